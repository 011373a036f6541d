use super::LEASE_SWEEP;
use super::lease::{Lease, LeaseName, LeaseOwner};
use super::rows::{EpochRow, HeldRow, LeaseRows};
use crate::kinds::planned::{Planned, until_committed};
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Partition, ReadStore};
use crate::timers::{Timer, TimerError, Timers};

/// What became of asking for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It is the caller's, under a new epoch.
    Granted(Lease),
    /// Somebody holds it, perhaps past its expiry while work of theirs is left. If the owner is the
    /// caller's own, an earlier try was committed.
    Held(Lease),
}

/// What became of renewing a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It is held on.
    Renewed(Lease),
    /// It is not held in that epoch any more; who holds it now.
    Lost(Option<Lease>),
}

/// What became of releasing a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// Nobody holds it now.
    Released,
    /// It was not held in that epoch any more; who holds it now.
    Lost(Option<Lease>),
}

/// How a lease stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Somebody holds it.
    Held(Lease),
    /// Nobody does.
    Vacant {
        /// The last epoch that was given; 0 if none was.
        last_epoch: u64,
        /// The highest watermark that was told of it.
        watermark: u64,
    },
}

/// The verbs of leases, over [`Timers`]. Cheap to clone.
///
/// Each verb has a planner, whose batch is appended to one of the caller's, and a short form that commits
/// it alone and starts over when a guard is lost, eight times at most. A planner reads through `reads`:
/// the store, or in a handler the reads of its context.
#[derive(Clone, Debug)]
pub struct Leases {
    timers: Timers,
}

impl Leases {
    /// The verbs over the store of these timers.
    pub fn new(timers: Timers) -> Self {
        Self { timers }
    }

    /// The timers that these go by.
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// How a lease stands. One read.
    ///
    /// # Errors
    /// `Corrupt` for a row that does not decode, and what the store says.
    pub async fn read(
        &self,
        partition: &Partition,
        name: &LeaseName,
    ) -> Result<LeaseState, TimerError> {
        let rows = LeaseRows::read(&**self.timers.store(), partition, name).await?;
        Ok(match (&rows.held.row, rows.epoch.row) {
            (Some(held), _) => LeaseState::Held(Lease::of(name, held)?),
            (None, Some(EpochRow::Vacant { epoch, watermark })) => LeaseState::Vacant {
                last_epoch: epoch,
                watermark,
            },
            (None, _) => LeaseState::Vacant {
                last_epoch: 0,
                watermark: 0,
            },
        })
    }

    /// Plans a grant for this many milliseconds from now: one read; three guards and three puts.
    ///
    /// # Errors
    /// `Invalid` for a term of 0 or one that ends behind the latest due, `Corrupt`, and what the store
    /// says.
    pub async fn plan_grant(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        name: &LeaseName,
        owner: &LeaseOwner,
        term_ms: u64,
    ) -> Result<Planned<Grant>, TimerError> {
        let rows = LeaseRows::read(reads, partition, name).await?;
        if let Some(held) = &rows.held.row {
            return Ok(Planned::nothing(Grant::Held(Lease::of(name, held)?)));
        }
        let watermark = match rows.epoch.row {
            Some(EpochRow::Vacant { watermark, .. }) => watermark,
            Some(EpochRow::Held { .. }) | None => 0,
        };
        let mut last_epoch = rows.epoch.row.map_or(0, EpochRow::epoch);
        if planted(Mutant::LeaseEpochStartsOver) {
            last_epoch = 0;
        }
        let epoch = last_epoch
            .checked_add(1)
            .ok_or_else(|| TimerError::invalid("the lease has given its last epoch"))?;
        let expires_at_ms = self.term_end_ms(term_ms)?;
        let held = HeldRow {
            epoch,
            expires_at_ms,
            sweep_due_ms: expires_at_ms,
            watermark,
            owner: owner.as_bytes().clone(),
        };
        let batch = rows.held.replace(Batch::new(), Some(&held));
        let batch = rows.epoch.replace(batch, Some(&EpochRow::Held { epoch }));
        Ok(Planned {
            batch: batch.append(self.sweep_at(name, expires_at_ms)?),
            outcome: Grant::Granted(Lease::of(name, &held)?),
        })
    }

    /// Asks for a lease.
    ///
    /// # Errors
    /// As [`plan_grant`](Self::plan_grant), and `Contended`.
    pub async fn grant(
        &self,
        partition: &Partition,
        name: &LeaseName,
        owner: &LeaseOwner,
        term_ms: u64,
    ) -> Result<Grant, TimerError> {
        let reads = &**self.timers.store();
        until_committed!(
            self.timers,
            partition,
            self.plan_grant(reads, partition, name, owner, term_ms)
        )
    }

    /// Plans that the holder of this epoch holds on for this many milliseconds from now, or for as long as
    /// it has already if that is longer. One read; two guards and two puts. The new end has a timer of its
    /// own; the one of the old end finds so and drains.
    ///
    /// A lease that has expired and was not swept yet can be renewed: nobody else has had it.
    ///
    /// # Errors
    /// As [`plan_grant`](Self::plan_grant).
    pub async fn plan_renew(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        name: &LeaseName,
        epoch: u64,
        term_ms: u64,
    ) -> Result<Planned<Renewal>, TimerError> {
        let rows = LeaseRows::read(reads, partition, name).await?;
        let mut held = match rows.held.row {
            Some(ref held) if held.epoch == epoch => held.clone(),
            ref other => {
                return Ok(Planned::nothing(Renewal::Lost(holder(
                    name,
                    other.as_ref(),
                )?)));
            }
        };
        let expires_at_ms = self.term_end_ms(term_ms)?;
        if expires_at_ms <= held.expires_at_ms {
            return Ok(Planned {
                batch: rows.held.guard(Batch::new()),
                outcome: Renewal::Renewed(Lease::of(name, &held)?),
            });
        }
        held.expires_at_ms = expires_at_ms;
        held.sweep_due_ms = expires_at_ms;
        let batch = rows.held.replace(Batch::new(), Some(&held));
        Ok(Planned {
            batch: batch.append(self.sweep_at(name, expires_at_ms)?),
            outcome: Renewal::Renewed(Lease::of(name, &held)?),
        })
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// As [`plan_renew`](Self::plan_renew), and `Contended`.
    pub async fn renew(
        &self,
        partition: &Partition,
        name: &LeaseName,
        epoch: u64,
        term_ms: u64,
    ) -> Result<Renewal, TimerError> {
        let reads = &**self.timers.store();
        until_committed!(
            self.timers,
            partition,
            self.plan_renew(reads, partition, name, epoch, term_ms)
        )
    }

    /// Plans that the holder of this epoch gives the lease back: its work is done, the source is not
    /// asked. One read; two guards, a put and a delete. The timer drains at its due.
    ///
    /// # Errors
    /// `Corrupt`, and what the store says.
    pub async fn plan_release(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        name: &LeaseName,
        epoch: u64,
    ) -> Result<Planned<Release>, TimerError> {
        let rows = LeaseRows::read(reads, partition, name).await?;
        match &rows.held.row {
            Some(held) if held.epoch == epoch => Ok(Planned {
                batch: vacate(&rows, held),
                outcome: Release::Released,
            }),
            other => Ok(Planned::nothing(Release::Lost(holder(
                name,
                other.as_ref(),
            )?))),
        }
    }

    /// Gives a lease back.
    ///
    /// # Errors
    /// As [`plan_release`](Self::plan_release), and `Contended`.
    pub async fn release(
        &self,
        partition: &Partition,
        name: &LeaseName,
        epoch: u64,
    ) -> Result<Release, TimerError> {
        let reads = &**self.timers.store();
        until_committed!(
            self.timers,
            partition,
            self.plan_release(reads, partition, name, epoch)
        )
    }

    /// Plans that the last epoch of a lease that nobody holds is forgotten: the next grant begins at 1
    /// again. Only for a name that will not be used again, or whose holders of old are all gone with their
    /// writes. `false` if somebody holds it.
    ///
    /// # Errors
    /// `Corrupt`, and what the store says.
    pub async fn plan_forget(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        name: &LeaseName,
    ) -> Result<Planned<bool>, TimerError> {
        let rows = LeaseRows::read(reads, partition, name).await?;
        if rows.held.row.is_some() {
            return Ok(Planned::nothing(false));
        }
        let batch = rows.held.guard(Batch::new());
        Ok(Planned {
            batch: rows.epoch.replace(batch, None),
            outcome: true,
        })
    }

    fn term_end_ms(&self, term_ms: u64) -> Result<u64, TimerError> {
        if term_ms == 0 {
            return Err(TimerError::invalid("the term of a lease is at least 1 ms"));
        }
        Ok(self.timers.runtime().now_ms().saturating_add(term_ms))
    }

    fn sweep_at(&self, name: &LeaseName, due_at_ms: u64) -> Result<Batch, TimerError> {
        let timer = Timer::new(LEASE_SWEEP, name.as_bytes().clone()).due_at(due_at_ms);
        Ok(self.timers.plan_new(&timer)?.batch)
    }
}

/// The lease goes and its epoch stays; guarded by both rows.
pub(super) fn vacate(rows: &LeaseRows, held: &HeldRow) -> Batch {
    let vacant = EpochRow::Vacant {
        epoch: held.epoch,
        watermark: held.watermark,
    };
    let batch = rows.held.replace(Batch::new(), None);
    rows.epoch.replace(batch, Some(&vacant))
}

fn holder(name: &LeaseName, row: Option<&HeldRow>) -> Result<Option<Lease>, TimerError> {
    Ok(row.map(|row| Lease::of(name, row)).transpose()?)
}

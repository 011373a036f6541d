use super::admission::{Admission, Basis, Limits};
use super::amounts::Amounts;
use super::quota::Quota;
use super::rows::{Place, TOTAL, Total, USAGE, Usage, VIEW, View};
use super::window::Window;
use crate::kinds::Planned;
use crate::kinds::observed::Observed;
use crate::kinds::row::Row;
use crate::store::{Batch, Partition, Precondition, ReadStore, StoreError};
use crate::timers::{TimerError, Timers, Tries};

/// What a partition knows of a quota's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaUsage {
    /// The window.
    pub window: Window,
    /// What was charged in this partition.
    pub local: Amounts,
    /// What was charged in all of them, as far as is known here: on the coordinator what was absorbed and
    /// what was charged there; elsewhere the last total that was pushed here, and what was charged here
    /// since.
    pub total: Amounts,
    /// What `total` rests on.
    pub basis: Basis,
}

/// Charges a quota, admits to it and tells how much of it is used.
///
/// ```
/// use std::sync::Arc;
/// use dueline::kinds::quota_rollup::{Admission, Limits, Quota, Quotas};
/// use dueline::memory::MemoryStore;
/// use dueline::store::{Batch, NamespaceStore, Partition};
/// use dueline::timers::Timers;
/// use dueline_testkit::{ManualClock, block_on, test_runtime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new(1_000);
/// let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
/// let tenant = Partition::new("tenant-7")?;
/// let quota = Quota::new("api", tenant, 60 * 60 * 1_000)?;
/// let quotas = Quotas::new(Timers::new(store.clone(), test_runtime(&clock)), quota);
///
/// // The charge and what it is for are one batch.
/// let shard = Partition::new("tenant-7/docs")?;
/// let limits = Limits::new([1_000, 1 << 20], [100, 1 << 17]);
/// block_on(async {
///     let plan = quotas.plan_charge_within(&*store, &shard, [1, 4_096], &limits).await?;
///     assert!(plan.outcome.is_admitted());
///     let write = Batch::new().put("doc/1", "text").append(plan.batch);
///     assert!(store.apply(&shard, write).await?.is_committed());
///
///     assert_eq!(quotas.usage(&shard).await?.local, [1, 4_096].into());
///     let much = quotas.charge_within(&shard, [1, 1 << 20], &limits).await?;
///     assert!(matches!(much, Admission::Refused { counter: 1, .. }));
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Quotas {
    timers: Timers,
    quota: Quota,
}

/// The rows of a window in one partition, as they were read.
#[derive(Debug)]
enum Seen {
    Shard {
        usage: Observed<Usage>,
        view: Option<View>,
    },
    Coordinator(Observed<Total>),
}

impl Quotas {
    /// The quota over the store of these timers.
    pub fn new(timers: Timers, quota: Quota) -> Self {
        Self { timers, quota }
    }

    /// The quota.
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The timers it schedules through.
    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Plans a charge on the present window of a partition, whatever is used already.
    ///
    /// Costs one read, and in the batch two preconditions and one write; three and two for the first
    /// charge of a window. In a handler `reads` are those of the context. The batch carries a time
    /// bound, 5 s behind the window's end: after it the window is closed, and
    /// [`DeadlinePassed`](crate::store::BatchOutcome::DeadlinePassed) says to plan again.
    ///
    /// # Errors
    /// `Invalid` if a counter would overflow; what the store says; `Corrupt` if the row of the window
    /// does not decode.
    pub async fn plan_charge(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        amounts: impl Into<Amounts>,
    ) -> Result<Planned<QuotaUsage>, TimerError> {
        let now_ms = self.timers.runtime().now_ms();
        let place = self.place_at(now_ms);
        let seen = self.read(reads, partition, &place, false).await?;
        self.charged(partition, &place, seen, amounts.into(), now_ms)
    }

    /// Plans a charge that is within the limits; a refusal writes nothing. Costs the same, with one key
    /// more in its read.
    ///
    /// # Errors
    /// As [`plan_charge`](Self::plan_charge).
    pub async fn plan_charge_within(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        amounts: impl Into<Amounts>,
        limits: &Limits,
    ) -> Result<Planned<Admission>, TimerError> {
        let amounts = amounts.into();
        let now_ms = self.timers.runtime().now_ms();
        let place = self.place_at(now_ms);
        let seen = self.read(reads, partition, &place, true).await?;
        let admission = limits.decide(&self.used(&place, &seen, now_ms), amounts);
        if !admission.is_admitted() {
            return Ok(Planned::nothing(admission));
        }
        let charged = self.charged(partition, &place, seen, amounts, now_ms)?;
        Ok(Planned {
            batch: charged.batch,
            outcome: admission,
        })
    }

    /// Charges the present window.
    ///
    /// # Errors
    /// As [`plan_charge`](Self::plan_charge); `Contended` if others charged the partition each of the
    /// eight times; `Unavailable` if the commit came too late for the window: charge again, which charges
    /// the next. After `Unknown` it is charged or not: to know, and to charge once only, plan it into
    /// a batch that writes a row of your own, guarded by its absence.
    pub async fn charge(
        &self,
        partition: &Partition,
        amounts: impl Into<Amounts>,
    ) -> Result<QuotaUsage, TimerError> {
        let amounts = amounts.into();
        let store = self.timers.store();
        let mut tries = Tries::default();
        loop {
            let planned = self.plan_charge(&**store, partition, amounts).await?;
            if let Some(usage) = planned.apply(&**store, partition).await? {
                return Ok(usage);
            }
            tries.changed()?;
        }
    }

    /// Charges the present window if that is within the limits.
    ///
    /// # Errors
    /// As [`charge`](Self::charge).
    pub async fn charge_within(
        &self,
        partition: &Partition,
        amounts: impl Into<Amounts>,
        limits: &Limits,
    ) -> Result<Admission, TimerError> {
        let amounts = amounts.into();
        let store = self.timers.store();
        let mut tries = Tries::default();
        loop {
            let planned = self.plan_charge_within(&**store, partition, amounts, limits);
            if let Some(admission) = planned.await?.apply(&**store, partition).await? {
                return Ok(admission);
            }
            tries.changed()?;
        }
    }

    /// Decides whether these amounts are within the limits and charges nothing. Costs one read.
    ///
    /// Two that ask at the same time may both be admitted: where that matters, use
    /// [`plan_charge_within`](Self::plan_charge_within).
    ///
    /// # Errors
    /// What the store says; `Corrupt` if the row of the window does not decode.
    pub async fn admit(
        &self,
        partition: &Partition,
        amounts: impl Into<Amounts>,
        limits: &Limits,
    ) -> Result<Admission, TimerError> {
        Ok(limits.decide(&self.usage(partition).await?, amounts.into()))
    }

    /// What a partition knows of the present window. Costs one read.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub async fn usage(&self, partition: &Partition) -> Result<QuotaUsage, TimerError> {
        let now_ms = self.timers.runtime().now_ms();
        let place = self.place_at(now_ms);
        let store = self.timers.store();
        let seen = self.read(&**store, partition, &place, true).await?;
        Ok(self.used(&place, &seen, now_ms))
    }

    /// The total of a window, read at the coordinator; `None` if nothing was rolled up, or the window is
    /// closed and its rows are gone. Costs one read.
    ///
    /// With shards that roll up on time it is complete a minute behind the window's end, and stays for
    /// another 30 s at least. Of a window that is gone a shard that was late may show its own part alone.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub async fn total(&self, window: Window) -> Result<Option<Amounts>, TimerError> {
        let key = self.quota.place(window).key(TOTAL, &[]);
        let coordinator = self.quota.coordinator();
        let store = self.timers.store();
        let total = Observed::<Total>::read(&**store, coordinator, key).await?;
        Ok(total.row.map(|total| total.sum()))
    }

    fn place_at(&self, now_ms: u64) -> Place {
        self.quota.place(self.quota.window_at(now_ms))
    }

    async fn read(
        &self,
        reads: &dyn ReadStore,
        partition: &Partition,
        place: &Place,
        with_view: bool,
    ) -> Result<Seen, StoreError> {
        if partition == self.quota.coordinator() {
            let key = place.key(TOTAL, &[]);
            return Ok(Seen::Coordinator(
                Observed::read(reads, partition, key).await?,
            ));
        }
        let usage_key = place.key(USAGE, &[]);
        if !with_view {
            let usage = Observed::read(reads, partition, usage_key).await?;
            return Ok(Seen::Shard { usage, view: None });
        }
        let keys = [usage_key.clone(), place.key(VIEW, &[])];
        let mut found = reads.get_many(partition, &keys).await?.into_iter();
        let usage = Observed::of(usage_key, found.next().flatten())?;
        // A view that does not decode is as good as none: the next roll-up writes a new one.
        let view = found.next().flatten();
        let view = view.and_then(|value| View::decode(&value).ok());
        Ok(Seen::Shard { usage, view })
    }

    fn used(&self, place: &Place, seen: &Seen, now_ms: u64) -> QuotaUsage {
        let (local, total, basis) = match seen {
            Seen::Coordinator(total) => {
                let total = total.row.unwrap_or_default();
                (total.charged, total.sum(), Basis::Exact)
            }
            Seen::Shard { usage, view } => {
                let local = usage.row.unwrap_or_default().0;
                match view {
                    None => (local, local, Basis::Local),
                    Some(view) => {
                        let since = local.minus(view.pushed);
                        let total = view.total.plus(since).max(local);
                        let observed_at_ms = view.observed_at_ms;
                        let basis = if self.quota.is_stale(observed_at_ms, now_ms) {
                            Basis::Stale { observed_at_ms }
                        } else {
                            Basis::View { observed_at_ms }
                        };
                        (local, total, basis)
                    }
                }
            }
        };
        QuotaUsage {
            window: place.window,
            local,
            total,
            basis,
        }
    }

    fn charged(
        &self,
        partition: &Partition,
        place: &Place,
        mut seen: Seen,
        amounts: Amounts,
        now_ms: u64,
    ) -> Result<Planned<QuotaUsage>, TimerError> {
        if amounts.is_zero() {
            return Ok(Planned::nothing(self.used(place, &seen, now_ms)));
        }
        let overflow = || TimerError::invalid("a counter of the window would overflow");
        let until_ms = place.window.charged_until_ms();
        let batch = Batch::new().require(Precondition::NotAfter(until_ms));
        let (batch, is_first) = match &mut seen {
            Seen::Shard { usage, .. } => {
                let charged = usage.row.unwrap_or_default().0;
                let charged = charged.checked_plus(amounts).ok_or_else(overflow)?;
                let is_first = usage.row.replace(Usage(charged)).is_none();
                (usage.replace(batch, usage.row.as_ref()), is_first)
            }
            Seen::Coordinator(total) => {
                let mut changed = total.row.unwrap_or_default();
                changed.charged = changed.charged.checked_plus(amounts).ok_or_else(overflow)?;
                let is_first = !std::mem::replace(&mut changed.is_charged, true);
                total.row = Some(changed);
                (total.replace(batch, total.row.as_ref()), is_first)
            }
        };
        let timer = if is_first {
            let timer = self.quota.first_timer(place, partition, now_ms);
            self.timers.plan_new(&timer)?.batch
        } else {
            Batch::new()
        };
        Ok(Planned {
            batch: batch.append(timer),
            outcome: self.used(place, &seen, now_ms),
        })
    }
}

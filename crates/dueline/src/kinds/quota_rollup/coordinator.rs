//! What a roll-up does at the coordinator: absorb, and close.

use super::amounts::Amounts;
use super::meter::{BackOff, QuotaNote};
use super::rows::{CONTRIBUTION, Contribution, Place, TOTAL, Total};
use crate::kinds::observed::Observed;
use crate::kinds::row::{Row, Table};
use crate::mutants::{Mutant, planted};
use crate::runtime::Runtime;
use crate::store::{
    Batch, BatchOutcome, Key, NamespaceStore, Partition, Precondition, ReadStore, ScanPage,
    StoreError, StoreErrorKind, Value,
};

/// How often a step is planned at the coordinator before the roll-up backs off.
const PLANS_MAX: u32 = 8;
/// How long after it was planned a step may commit, in milliseconds.
pub(super) const COMMIT_WITHIN_MS: u64 = 10_000;
/// How far the clock of this process and that of the coordinator's store may be apart, in milliseconds;
/// beyond it a step is planned again by the store's.
pub(super) const SKEW_MS: u64 = 5_000;
/// Most rows of one class that one step removes of older windows.
pub(super) const OLDER_ROWS_MAX: usize = 8;

/// A shard at its coordinator.
#[derive(Debug)]
pub(super) struct AtCoordinator<'a> {
    pub(super) store: &'a dyn NamespaceStore,
    pub(super) runtime: &'a Runtime,
    pub(super) coordinator: &'a Partition,
    pub(super) place: &'a Place,
    pub(super) shard: &'a Partition,
}

/// What absorbing came to.
#[derive(Debug)]
pub(super) struct Absorbed {
    /// The total, this shard included.
    pub(super) total: Amounts,
    /// What had been absorbed before, if the shard now shows less.
    pub(super) rebaselined_from: Option<Amounts>,
}

/// What closing came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The shard's contribution is gone.
    Gone {
        /// Rows of older windows, or without a meaning, that went with it.
        drained: u64,
        /// Whether there are more of older windows.
        has_more: bool,
    },
    /// Something was charged that is not absorbed: absorb first.
    Behind,
    /// By the coordinator's clock the window is not over yet.
    Early,
}

impl AtCoordinator<'_> {
    /// Makes the shard's part of the total what the shard shows. A second time it changes nothing.
    pub(super) async fn absorb(&self, shown: Amounts) -> Result<Absorbed, BackOff> {
        let keys = [
            self.place.contribution(self.shard),
            self.place.key(TOTAL, &[]),
        ];
        let mut clock = ItsClock::default();
        // Of the first plan: one that came through in doubt shows nothing of it any more.
        let mut rebaselined_from = None;
        for _ in 0..PLANS_MAX {
            let found = self.store.get_many(self.coordinator, &keys).await;
            let (mut contribution, mut total) = both(&keys, found)?;
            let before = contribution.row.map(|contribution| contribution.0);
            let mut after = total.row.unwrap_or(Total {
                // Without a total the contribution counts as one that is new.
                shards: u64::from(before.is_some()),
                ..Total::default()
            });
            let known = before.unwrap_or_default();
            let base = if planted(Mutant::RollUpAddsAgain) {
                after.absorbed
            } else {
                after.absorbed.minus(known)
            };
            after.absorbed = base.plus(shown);
            after.shards = after.shards.saturating_add(u64::from(before.is_none()));
            let decreased = before.filter(|before| !before.minus(shown).is_zero());
            rebaselined_from = rebaselined_from.or(decreased);
            let absorbed = Absorbed {
                total: after.sum(),
                rebaselined_from,
            };
            if before == Some(shown) && total.row == Some(after) {
                return Ok(absorbed);
            }
            contribution.row = Some(Contribution(shown));
            total.row = Some(after);
            let batch = contribution.replace(self.bounded(clock), contribution.row.as_ref());
            let batch = total.replace(batch, total.row.as_ref());
            if self.commit(batch, &mut clock).await? {
                return Ok(absorbed);
            }
        }
        Err(BackOff::Contention)
    }

    /// Removes the shard's contribution, the total with the last of them, and a page of what older
    /// windows left. `shown` is what the shard shows, `None` if its rows are gone already or say nothing.
    pub(super) async fn close(&self, shown: Option<Amounts>) -> Result<Closed, BackOff> {
        let mut clock = ItsClock::default();
        for _ in 0..PLANS_MAX {
            let planned = plan_close(
                self.store,
                self.coordinator,
                self.place,
                Some((self.shard, shown)),
            );
            let Some(planned) = planned.await.map_err(|error| reason(&error))? else {
                return Ok(Closed::Behind);
            };
            let closed = Closed::Gone {
                drained: planned.drained,
                has_more: planned.has_more,
            };
            if planned.batch.is_empty() {
                return Ok(closed);
            }
            let closes_at_ms = self.place.window.closes_at_ms();
            if clock.now_ms(self.runtime) < closes_at_ms {
                return Ok(Closed::Early);
            }
            let batch = self
                .bounded(clock)
                .require(Precondition::NotBefore(closes_at_ms))
                .append(planned.batch);
            if self.commit(batch, &mut clock).await? {
                return Ok(closed);
            }
        }
        Err(BackOff::Contention)
    }

    /// A batch that does not commit late, when others may have gone on from a state that looks the same.
    fn bounded(&self, clock: ItsClock) -> Batch {
        if planted(Mutant::RollUpCommitsLate) {
            return Batch::new();
        }
        let now_ms = clock.now_ms(self.runtime);
        Batch::new()
            .require(Precondition::NotBefore(now_ms.saturating_sub(SKEW_MS)))
            .require(Precondition::NotAfter(
                now_ms.saturating_add(COMMIT_WITHIN_MS),
            ))
    }

    /// Whether the batch has committed; if not, it is to be planned again.
    async fn commit(&self, batch: Batch, clock: &mut ItsClock) -> Result<bool, BackOff> {
        match self.store.apply(self.coordinator, batch).await {
            Ok(BatchOutcome::Committed) => Ok(true),
            Ok(
                BatchOutcome::DeadlinePassed { backend_now_ms }
                | BatchOutcome::TooEarly { backend_now_ms },
            ) => {
                *clock = ItsClock::shows(backend_now_ms, self.runtime);
                Ok(false)
            }
            Ok(BatchOutcome::PreconditionFailed { .. }) => Ok(false),
            // Planning again shows what became of it.
            Err(error) if error.kind() == StoreErrorKind::Unknown => Ok(false),
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The clock of the coordinator's store, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct ItsClock {
    ahead_ms: u64,
    behind_ms: u64,
}

impl ItsClock {
    fn shows(its_now_ms: u64, runtime: &Runtime) -> Self {
        let now_ms = runtime.now_ms();
        Self {
            ahead_ms: its_now_ms.saturating_sub(now_ms),
            behind_ms: now_ms.saturating_sub(its_now_ms),
        }
    }

    fn now_ms(self, runtime: &Runtime) -> u64 {
        let now_ms = runtime.now_ms().saturating_add(self.ahead_ms);
        now_ms.saturating_sub(self.behind_ms)
    }
}

/// What removes a window's rows at the coordinator.
#[derive(Debug)]
pub(super) struct PlannedClose {
    pub(super) batch: Batch,
    pub(super) drained: u64,
    pub(super) has_more: bool,
}

/// Plans the end of a shard's contribution, or without one that of what was charged on the coordinator
/// itself. `None` if something was charged that is not absorbed.
///
/// A row that does not decode goes with its window: it counts for nothing any more.
pub(super) async fn plan_close(
    reads: &dyn ReadStore,
    coordinator: &Partition,
    place: &Place,
    of: Option<(&Partition, Option<Amounts>)>,
) -> Result<Option<PlannedClose>, StoreError> {
    let mut keys = vec![place.key(TOTAL, &[])];
    keys.extend(of.map(|(shard, _)| place.contribution(shard)));
    let mut found = reads.get_many(coordinator, &keys).await?.into_iter();
    let (total, contribution) = (found.next().flatten(), found.next().flatten());
    let older = Older::read(reads, coordinator, place, [CONTRIBUTION, TOTAL]).await?;
    let mut drained = older.rows();
    let mut batch = older.remove(Batch::new());
    let mut is_leaving = of.is_none();
    if let (Some((shard, shown)), Some(value)) = (of, contribution) {
        match (Contribution::decode(&value), shown) {
            (Ok(absorbed), Some(shown)) if absorbed.0 != shown => return Ok(None),
            (Ok(_), _) => {}
            (Err(_), _) => drained += 1,
        }
        batch = remove(batch, (place.contribution(shard), value));
        is_leaving = true;
    }
    if let Some(value) = total {
        let key = place.key(TOTAL, &[]);
        match Total::decode(&value) {
            Err(_) => {
                drained += 1;
                batch = remove(batch, (key, value));
            }
            Ok(total) if is_leaving => {
                batch = batch.require_equals(key.clone(), value);
                batch = match total.without(of.is_some()) {
                    Some(rest) => batch.put(key, rest.encode()),
                    None => batch.delete(key),
                };
            }
            Ok(_) => {}
        }
    }
    Ok(Some(PlannedClose {
        batch,
        drained,
        has_more: older.has_more,
    }))
}

/// One page of what earlier windows of a quota left in two tables.
#[derive(Debug)]
pub(super) struct Older {
    rows: Vec<(Key, Value)>,
    pub(super) has_more: bool,
}

impl Older {
    pub(super) async fn read(
        reads: &dyn ReadStore,
        partition: &Partition,
        place: &Place,
        tables: [Table; 2],
    ) -> Result<Self, StoreError> {
        let ranges = tables.map(|table| place.older(table, OLDER_ROWS_MAX));
        let pages = reads.scan_many(partition, &ranges).await?;
        // A store may answer with fewer pages than were asked for.
        let is_short = pages.len() < tables.len();
        let has_more = is_short || pages.iter().any(|page| page.next.is_some());
        let rows = pages.into_iter().flat_map(|ScanPage { rows, .. }| rows);
        Ok(Self {
            rows: rows.collect(),
            has_more,
        })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(super) fn remove(&self, batch: Batch) -> Batch {
        self.rows.iter().cloned().fold(batch, remove)
    }
}

/// Removes a row as it was read.
pub(super) fn remove(batch: Batch, (key, value): (Key, Value)) -> Batch {
    batch.require_equals(key.clone(), value).delete(key)
}

type Both = (Observed<Contribution>, Observed<Total>);

fn both(keys: &[Key; 2], found: Result<Vec<Option<Value>>, StoreError>) -> Result<Both, BackOff> {
    let decoded = found.and_then(|found| {
        let [contribution, total] = keys.clone();
        let mut found = found.into_iter();
        Ok((
            Observed::of(contribution, found.next().flatten())?,
            Observed::of(total, found.next().flatten())?,
        ))
    });
    decoded.map_err(|error| reason(&error))
}

fn reason(error: &StoreError) -> BackOff {
    if error.kind() == StoreErrorKind::Corrupt {
        BackOff::Corrupt
    } else {
        BackOff::Storage
    }
}

impl BackOff {
    /// Its name in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Contention => "contention",
            Self::Storage => "storage",
        }
    }
}

/// Says it to the log; the meter is told by the handler.
pub(super) fn warn(note: &QuotaNote<'_>) {
    match note {
        QuotaNote::Rebaselined {
            shard,
            window,
            absorbed,
            shown,
        } => tracing::warn!(
            %shard,
            window_start_ms = window.start_ms,
            ?absorbed,
            ?shown,
            "a shard of a quota shows less than was absorbed of it; its total follows"
        ),
        QuotaNote::BackedOff {
            shard,
            window,
            reason,
        } => tracing::warn!(
            %shard,
            window_start_ms = window.start_ms,
            reason = reason.name(),
            "a roll-up of a quota backs off one period"
        ),
        QuotaNote::Drained { partition, rows } => tracing::warn!(
            %partition,
            rows,
            "rows of a quota that were left behind are removed"
        ),
    }
}

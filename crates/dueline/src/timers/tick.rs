//! One bounded run over the due timers of one partition.

use std::sync::Arc;
use std::time::Duration;

use super::call::ClaimedCall;
use super::engine::{Engine, Tick, TickRequest};
use super::group::Staged;
use super::lane::{Closed, DueRow, Lane};
use super::overlay::Overlay;
use super::{KindSet, RunReport, TickState, TimerKind};
use crate::mutants::{Mutant, planted};
use crate::ordered::{OrderedMap, OrderedSet};
use crate::rows::TimerKey;
use crate::store::{Key, NamespaceStore, Partition, ScanRange, StoreError};

/// The tick under way.
pub(super) struct TickRun<'a> {
    pub(super) engine: &'a Engine,
    pub(super) partition: &'a Partition,
    pub(super) store: Arc<dyn NamespaceStore>,
    pub(super) state: &'a mut TickState,
    /// What is due later than this is not this tick's, in milliseconds since 1970.
    pub(super) cutoff_ms: u64,
    pub(super) cautious_until_ms: Option<u64>,
    pub(super) lanes: Vec<Lane<'a>>,
    pub(super) paused: KindSet,
    /// Most rows a lane reads at a time, so that the others have theirs.
    pub(super) rows_share: usize,
    pub(super) overlay: Arc<Overlay>,
    pub(super) staged: Staged,
    /// How often the size of groups was halved because a member lost its guard or was refused.
    pub(super) halvings: u32,
    /// A timer that was claimed for a cautious run whose end the store then refused.
    pub(super) held_claim: Option<DueRow>,
    /// Timer rows put and deleted by committed batches of this tick.
    pub(super) put: OrderedSet<Key>,
    pub(super) removed: OrderedSet<Key>,
    /// The monotonic clock where the last row was begun.
    pub(super) begun: Duration,
    pub(super) settles: bool,
    pub(super) settled: bool,
    pub(super) next_wakes: OrderedMap<TimerKind, Option<u64>>,
    pub(super) report: RunReport,
    pub(super) calls: Vec<ClaimedCall>,
    shares: Shares,
    /// Kinds that run behind the others of this tick.
    slow: KindSet,
}

/// What each lane may use of the budget before the others have had theirs.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    fires: u32,
    time: Duration,
}

impl<'a> TickRun<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        request: &TickRequest<'a>,
        state: &'a mut TickState,
    ) -> Self {
        let store = Arc::clone(&engine.tick_store);
        let early_ms = u64::from(planted(Mutant::FiresOneEarly));
        Self {
            engine,
            partition: request.partition,
            state,
            cutoff_ms: engine.runtime().now_ms() + early_ms,
            cautious_until_ms: request.cautious_until_ms,
            lanes: Vec::new(),
            paused: KindSet::new(),
            rows_share: usize::MAX,
            overlay: Arc::new(Overlay::new(Arc::clone(&store), request.partition.clone())),
            staged: Staged::default(),
            halvings: 0,
            held_claim: None,
            put: OrderedSet::new(),
            removed: OrderedSet::new(),
            begun: Duration::ZERO,
            settles: request.wakes.is_some() && store.capabilities().wakes,
            settled: false,
            next_wakes: OrderedMap::new(),
            report: RunReport::default(),
            calls: Vec::new(),
            shares: Shares::default(),
            slow: *engine.slow_kinds(),
            store,
        }
    }

    pub(super) async fn run(mut self, request: &TickRequest<'a>) -> Tick {
        if self.state.is_exhausted(self.engine.runtime().monotonic()) {
            self.report.stopped_on_budget = true;
            let asleep_ms = 5_000 * u64::from(planted(Mutant::SpentBudgetSleeps));
            self.report.next_wake_ms = Some(self.cutoff_ms + asleep_ms);
            return self.into_tick();
        }
        let found = match request.wakes {
            Some(wakes) => self.discover_woken(wakes).await,
            None => self.discover_all().await,
        };
        match found {
            Ok(()) => self.serve().await,
            Err(error) => self.hold_all(&error),
        }
        self.finish().await;
        self.into_tick()
    }

    /// Runs what is due, lane heads merged by (due, kind), those of slow kinds behind the others, until
    /// nothing may be started any more.
    async fn serve(&mut self) {
        self.deal_shares();
        loop {
            // Nothing comes between a cautious claim and its run, or a crash in the run of another
            // would count an attempt that this timer never had.
            if let Some(index) = self.claimed_head() {
                self.begun = self.engine.runtime().monotonic();
                self.process_next(index).await;
                continue;
            }
            if let Err(error) = self.refill().await {
                self.hold_all(&error);
            }
            self.stop_on_time();
            match self.pick() {
                Some(index) => self.process_next(index).await,
                None if self.staged.is_empty() => break,
                None => {
                    self.flush(true).await;
                }
            }
        }
    }

    fn deal_shares(&mut self) {
        let live = self.lanes.iter().filter(|lane| lane.is_live()).count();
        let lanes = u32::try_from(live).unwrap_or(u32::MAX).max(1);
        self.shares = Shares {
            fires: (self.state.fires_left() / lanes).max(1),
            time: self.state.time_left(self.engine.runtime().monotonic()) / lanes,
        };
    }

    /// Reads the next page of every lane that has run out of rows, so that heads can be compared.
    async fn refill(&mut self) -> Result<(), StoreError> {
        for index in 0..self.lanes.len() {
            let scans_left = self.state.scans_left();
            let Some(lane) = self.lanes.get_mut(index).filter(|lane| lane.needs_page()) else {
                continue;
            };
            let per_tick_max = lane.registration.and_then(|known| known.per_tick_max);
            if self.state.fires_left() == 0 || (scans_left == 0 && lane.handled > 0) {
                lane.close(Closed::Budget);
            } else if self.state.kind_left(lane.kind, per_tick_max) == 0 {
                lane.close(Closed::Cap);
            } else {
                self.read_page(index).await?;
            }
        }
        Ok(())
    }

    /// Closes the lanes for which the time or the fires of the tick are over; one that has not
    /// dealt with any row may still deal with one.
    fn stop_on_time(&mut self) {
        self.begun = self.engine.runtime().monotonic();
        let over = self.state.time_left(self.begun).is_zero();
        let spent = self.state.fires_left() == 0
            || planted(Mutant::ScanLimitStopsFirstFire) && self.state.scans_left() == 0;
        for lane in &mut self.lanes {
            let first = lane.handled == 0 && !spent;
            if lane.is_live() && (spent || over) && !first {
                lane.close(Closed::Budget);
            }
        }
    }

    /// The lane whose head was claimed by this tick and has not run to its end.
    fn claimed_head(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| {
            lane.is_live() && lane.rows.front().is_some_and(|row| row.claimed_here)
        })
    }

    /// The lane whose head is first by (due, kind). A kind that was slow in its last tick is behind the
    /// others: what came due while they waited for it does not wait for it again.
    fn pick(&self) -> Option<usize> {
        self.lanes
            .iter()
            .enumerate()
            .filter(|(_, lane)| lane.is_live())
            .filter_map(|(index, lane)| {
                let is_slow = self.slow.contains(lane.kind);
                Some((is_slow, lane.next_due_ms()?, lane.kind, index))
            })
            .min()
            .map(|(_, _, _, index)| index)
    }

    async fn process_next(&mut self, index: usize) {
        let Some(row) = self
            .lanes
            .get_mut(index)
            .and_then(|lane| lane.rows.pop_front())
        else {
            return;
        };
        // A timer put by a batch of this tick waits for the next one.
        if self.put.contains(&row.key) {
            return;
        }
        if self.removed.contains(&row.key) {
            let kind = self
                .lanes
                .get(index)
                .map_or(TimerKind::INVALID, |lane| lane.kind);
            return self.report.count(kind, |counts| counts.raced += 1);
        }
        if self.overlay.deletes(&row.key) {
            return self.staged.skip(row);
        }
        match TimerKey::decode(&row.key) {
            Ok(key) => {
                if let Some(row) = self.admit(index, row) {
                    self.run_row(index, key, row).await;
                }
            }
            Err(_) if planted(Mutant::MalformedHidesLater) => self.close_lane(&row, Closed::Cap),
            Err(malformed) => {
                // Costs no fire, but ends with the time and the rows of the tick like one.
                if let Some(lane) = self.lanes.get_mut(index) {
                    lane.handled = lane.handled.saturating_add(1);
                }
                self.set_aside(row, malformed).await;
            }
        }
    }

    /// Charges the run of a row, or closes its lane and leaves the row for a later tick.
    fn admit(&mut self, index: usize, mut row: DueRow) -> Option<DueRow> {
        if row.charged {
            return Some(row);
        }
        let reserved = self.fires_reserved_for_others(index);
        let lane = self.lanes.get_mut(index)?;
        let per_tick_max = lane.registration.and_then(|known| known.per_tick_max);
        let beyond_share = lane.fires >= self.shares.fires;
        let reason = if beyond_share && self.state.fires_left() <= reserved {
            Closed::Budget
        } else if self.state.kind_left(lane.kind, per_tick_max) == 0 {
            Closed::Cap
        } else if self.state.claim(lane.kind, per_tick_max) {
            lane.fires = lane.fires.saturating_add(1);
            lane.handled = lane.handled.saturating_add(1);
            row.charged = true;
            return Some(row);
        } else {
            Closed::Budget
        };
        lane.rows.push_front(row);
        lane.close(reason);
        if planted(Mutant::CappedKindStopsTick) && reason == Closed::Cap {
            self.lanes.iter_mut().for_each(|lane| lane.close(reason));
        }
        None
    }

    /// Puts a charged row back for a later tick and closes its lane. Its run is given back, so that
    /// a lane that has to wait takes nothing from the others.
    pub(super) fn postpone(&mut self, mut row: DueRow, reason: Closed) {
        let kind = row.kind();
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == kind) else {
            return;
        };
        if std::mem::take(&mut row.charged) {
            self.state.give_back(kind);
            lane.fires = lane.fires.saturating_sub(1);
        }
        lane.rows.push_front(row);
        lane.closed = Some(reason);
    }

    /// Opens the lanes that were closed for want of fires which have been given back since. One that
    /// is over its share of time stays closed.
    pub(super) fn reopen_lanes(&mut self) {
        let share = self.shares.time;
        for lane in &mut self.lanes {
            if matches!(lane.closed, Some(Closed::Budget | Closed::Cap)) && lane.spent <= share {
                lane.closed = None;
            }
        }
    }

    /// Fires that the other lanes have not used of their share and may need.
    fn fires_reserved_for_others(&self, index: usize) -> u32 {
        self.lanes
            .iter()
            .enumerate()
            .filter(|(other, lane)| *other != index && lane.is_live())
            .filter(|_| !planted(Mutant::LaneTakesAll))
            .map(|(_, lane)| {
                let unused = self.shares.fires.saturating_sub(lane.fires);
                unused.min(lane.rows_left())
            })
            .fold(0, u32::saturating_add)
    }

    /// Notes time a lane has used; over its share it closes.
    pub(super) fn spend(&mut self, index: usize, spent: Duration) {
        let share = self.shares.time;
        let Some(lane) = self.lanes.get_mut(index) else {
            return;
        };
        lane.spent += spent;
        if lane.spent > share {
            lane.close(Closed::Budget);
        }
    }

    /// The store failed a read: nothing more is started, and the driver holds the partition back.
    pub(super) fn hold_all(&mut self, error: &StoreError) {
        tracing::warn!(partition = %self.partition, %error, "the store failed a tick");
        self.report.hold_back(error);
        for lane in &mut self.lanes {
            lane.close(Closed::Held);
        }
    }

    fn note_slow_kinds(&self) {
        let mut slow = self.engine.slow_kinds();
        for lane in self.lanes.iter().filter(|lane| lane.fires > 0) {
            if lane.spent > self.shares.time {
                slow.insert(lane.kind);
            } else {
                slow.remove(lane.kind);
            }
        }
    }

    async fn finish(&mut self) {
        self.note_slow_kinds();
        for lane in &mut self.lanes {
            let left = u64::try_from(lane.rows.len()).unwrap_or(u64::MAX);
            let more = left > 0 || lane.more.is_some();
            match lane.closed {
                Some(Closed::Budget) if more => self.report.stopped_on_budget = true,
                Some(Closed::Held | Closed::TooEarly) => continue,
                _ => {}
            }
            self.report
                .count(lane.kind, |counts| counts.deferred += left);
        }
        if let Some(row) = self.held_claim.take() {
            self.give_claim_back(&row).await;
        }
        if self.settles && !self.settled && !self.report.held_back {
            self.flush(true).await;
        }
        // Served wakes that were not settled stand, in the past.
        let stand = self.settles
            && (!self.settled
                || self
                    .lanes
                    .iter()
                    .any(|lane| lane.closed == Some(Closed::NoSlot)));
        self.report.next_wake_ms = if self.report.held_back || stand {
            Some(self.cutoff_ms)
        } else if self.settles {
            self.next_wakes.values().copied().flatten().min()
        } else {
            self.read_next_wake().await
        };
    }

    /// The earliest head of the lanes that could run here and are not paused: for drivers without
    /// stored wakes.
    async fn read_next_wake(&mut self) -> Option<u64> {
        let mut kinds = self.engine.registry.kinds();
        kinds.insert(TimerKind::INVALID);
        let heads: Vec<ScanRange> = kinds
            .iter()
            .filter(|kind| !self.paused.contains(*kind))
            .filter(|kind| {
                let was_due = self.lanes.iter().any(|lane| lane.kind == *kind);
                was_due || !planted(Mutant::NextWakeMissesLanes)
            })
            .map(|kind| ScanRange::new(TimerKey::lane_start(kind), TimerKey::lane_end(kind), 1))
            .collect();
        match self.read_all(&heads).await {
            Ok(pages) => pages
                .iter()
                .filter_map(|page| page.rows.first())
                .filter_map(|(key, _)| crate::rows::lane_head(key))
                .map(|head| head.due_ms.max(self.cutoff_ms))
                .min(),
            Err(error) => {
                tracing::warn!(partition = %self.partition, %error, "the store failed a tick");
                self.report.hold_back(&error);
                Some(self.cutoff_ms)
            }
        }
    }

    fn into_tick(self) -> Tick {
        Tick {
            report: self.report,
            calls: self.calls,
            next_wakes: self.next_wakes.into_iter().collect(),
        }
    }
}

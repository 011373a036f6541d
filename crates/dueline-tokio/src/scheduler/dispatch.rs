use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dueline::store::{LaneWake, Partition, Wake};
use dueline::timers::{Registry, TickBudget, TimerKind};

use super::Scheduler;
use crate::plan::Window;
use crate::work::{self, Began};

/// What a tick may take beyond its budget and its last deadline before it is reported.
const OVERRUN_MARGIN: Duration = Duration::from_secs(2);
/// More due wakes than this at a time are worked in partition order: neighbours share pages.
const PARTITION_ORDER_ABOVE: usize = 1_024;

/// The ticks under way: what runs in them and how long it may take.
#[derive(Debug)]
pub(super) struct Overruns {
    deadlines: BTreeMap<TimerKind, Duration>,
    budget: Duration,
    ticks: BTreeMap<Partition, Underway>,
    per_kind: BTreeMap<TimerKind, u32>,
    next_check: Duration,
}

#[derive(Debug)]
struct Underway {
    kinds: Vec<TimerKind>,
    limit: Duration,
    began: Began,
    reported: bool,
}

impl Overruns {
    pub(super) fn new(registry: &Registry, budget: TickBudget) -> Self {
        Self {
            deadlines: registry
                .iter()
                .map(|(kind, registration)| (kind, registration.deadline()))
                .collect(),
            budget: Duration::from_millis(budget.max_elapsed_ms),
            ticks: BTreeMap::new(),
            per_kind: BTreeMap::new(),
            next_check: Duration::ZERO,
        }
    }

    fn begin(&mut self, partition: &Partition, wakes: &[LaneWake]) -> Began {
        let mut kinds: Vec<TimerKind> = wakes.iter().map(|wake| wake.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let deadline = kinds
            .iter()
            .filter_map(|kind| self.deadlines.get(kind))
            .max()
            .copied()
            .unwrap_or_default();
        for kind in &kinds {
            *self.per_kind.entry(*kind).or_insert(0) += 1;
        }
        let began = Began::default();
        let underway = Underway {
            kinds,
            limit: self
                .budget
                .saturating_add(deadline)
                .saturating_add(OVERRUN_MARGIN),
            began: began.clone(),
            reported: false,
        };
        self.ticks.insert(partition.clone(), underway);
        began
    }

    /// Ends a tick; returns the kinds it served.
    pub(super) fn end(&mut self, partition: &Partition) -> Vec<TimerKind> {
        let Some(underway) = self.ticks.remove(partition) else {
            return Vec::new();
        };
        for kind in &underway.kinds {
            if let Some(ticks) = self.per_kind.get_mut(kind) {
                *ticks = ticks.saturating_sub(1);
            }
        }
        underway.kinds
    }

    fn of_kind(&self, kind: TimerKind) -> u32 {
        self.per_kind.get(&kind).copied().unwrap_or(0)
    }
}

impl Scheduler {
    /// Whether a lane of this kind can do anything in a tick that starts now.
    fn has_room(&self, kind: TimerKind) -> bool {
        self.windows
            .iter()
            .find(|window| window.kinds.contains(kind))
            .is_some_and(|window| self.has_room_for(window.detached))
    }

    pub(super) fn has_room_for_window(&self, index: usize) -> bool {
        self.windows
            .get(index)
            .is_some_and(|window| self.has_room_for(window.detached))
    }

    fn has_room_for(&self, detached: Option<(TimerKind, u32)>) -> bool {
        let Some((kind, concurrency)) = detached else {
            return true;
        };
        // A tick under way will take a slot that still looks free.
        let taken = self
            .shared
            .calls
            .of_kind(kind)
            .saturating_add(self.overruns.of_kind(kind));
        taken < concurrency && self.shared.engine.slots().has_room(kind)
    }

    /// Gives the partitions of due wakes their place in the queue.
    pub(super) fn collect_due(&mut self, now_ms: u64) {
        for index in 0..self.windows.len() {
            if !self.has_room_for_window(index) {
                continue;
            }
            let Some(window) = self.windows.get_mut(index) else {
                continue;
            };
            let due = window.take_due(now_ms, PARTITION_ORDER_ABOVE);
            for wake in &due {
                self.book.add(wake);
            }
        }
    }

    /// Lets a due wake wait until its kind has a slot.
    pub(super) fn wait_for_slot(&mut self, wake: Wake) {
        if let Some(window) = self.window_of(wake.kind) {
            window.wait(wake);
        }
    }

    pub(super) fn window_of(&mut self, kind: TimerKind) -> Option<&mut Window> {
        self.windows
            .iter_mut()
            .find(|window| window.kinds.contains(kind))
    }

    /// Starts turns while there is room for ticks.
    pub(super) fn dispatch(&mut self) {
        let mut without_room = Vec::new();
        while self.book.running() < self.settings.ticks_max {
            let mut book = std::mem::take(&mut self.book);
            let turn = book.next(|kind| self.has_room(kind), &mut without_room);
            self.book = book;
            let Some(turn) = turn else {
                break;
            };
            let began = self.overruns.begin(&turn.partition, &turn.wakes);
            let tick = work::tick(Arc::clone(&self.shared), turn, began);
            self.shared.pool.push_tick(tick);
        }
        for wake in without_room {
            self.wait_for_slot(wake);
        }
    }

    /// Reports, once each, ticks that do not end.
    pub(super) fn report_overruns(&mut self, now: Duration) {
        if now < self.overruns.next_check {
            return;
        }
        self.overruns.next_check = now.saturating_add(Duration::from_secs(1));
        for (partition, underway) in &mut self.overruns.ticks {
            let Some(began) = underway.began.get() else {
                continue;
            };
            let took = now.saturating_sub(began);
            if took < underway.limit || underway.reported {
                continue;
            }
            underway.reported = true;
            self.status.ticks_overrun += 1;
            tracing::warn!(
                %partition,
                kinds = ?underway.kinds,
                took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "a tick does not end: a handler blocks its thread without yielding, or the store \
                 does not answer",
            );
        }
    }
}

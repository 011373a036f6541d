//! What the program's own commits tell the driver: look at this group of kinds at that time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::runtime::Runtime;
use dueline::timers::{KindSet, TimerKind};

use crate::mutants::{Mutant, planted};
use crate::signal::Signal;

/// Most times remembered for one group; beyond it the latest are forgotten and the group's window is
/// taken to end there.
const TIMES_MAX: usize = 1_024;

/// Times at which stored wakes may be waiting that the driver has not read.
///
/// The driver has read every wake of a group before its horizon, but those put since; their times
/// lie here. Wakes at or behind the horizon are read when it is reached, so they need no place.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    table: Mutex<Table>,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Table {
    groups: Vec<GroupLooks>,
    /// Whose clock the driver goes by; `None` before it has begun.
    runtime: Option<Runtime>,
    /// The driver sleeps until this time; 0 while it is awake, since it will look before it sleeps.
    asleep_until_ms: u64,
}

#[derive(Debug)]
struct GroupLooks {
    kinds: KindSet,
    times_ms: BTreeSet<u64>,
    horizon_ms: u64,
}

impl Looks {
    /// What wakes the driver's thread.
    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// Begins to take note, with nothing read of any group.
    pub(crate) fn watch(&self, groups: impl IntoIterator<Item = KindSet>, runtime: &Runtime) {
        let mut table = self.lock();
        table.runtime = Some(runtime.clone());
        table.groups = groups
            .into_iter()
            .map(|kinds| GroupLooks {
                kinds,
                times_ms: BTreeSet::new(),
                horizon_ms: 0,
            })
            .collect();
    }

    /// Lanes may have stored wakes at these times, or now at those that are over: a store sets no
    /// wake before its own time. Called behind the commit, so that its wake is not later than the
    /// time noted. Noted as earlier, it might be looked for by a reading of the clock that is older
    /// than the wake, not be found, and be forgotten. Wakes the driver if it sleeps beyond one.
    pub(crate) fn lower(&self, lanes: impl Iterator<Item = (TimerKind, u64)>) {
        let mut table = self.lock();
        let now_ms = table.now_ms();
        let mut earliest_ms = u64::MAX;
        for (kind, at_ms) in lanes {
            let at_ms = at_ms.max(now_ms);
            let Some(group) = table
                .groups
                .iter_mut()
                .find(|group| group.kinds.contains(kind))
            else {
                continue;
            };
            let is_forgotten = planted(Mutant::DriverForgetsLooks) && !group.times_ms.is_empty();
            if at_ms < group.horizon_ms && !is_forgotten {
                group.note(at_ms);
                earliest_ms = earliest_ms.min(at_ms);
            }
        }
        let wakes = earliest_ms < table.asleep_until_ms;
        drop(table);
        if wakes && !planted(Mutant::DriverSleepsThroughWake) {
            self.signal.raise();
        }
    }

    /// A settle has left these wakes. What a tick settled its turn tells too, but what the end of a
    /// call settled nobody else does: its row may have been put before this process began, and lain
    /// behind an earlier wake of its lane when the wakes were read. A wake that nobody knows of would
    /// stay in the store for good if its row goes before its time.
    pub(crate) fn settled(&self, lanes: impl Iterator<Item = (TimerKind, Option<u64>)>) {
        let until_ms = if planted(Mutant::SettledWakesUnnoted) {
            self.lock().now_ms()
        } else {
            u64::MAX
        };
        let left = lanes.filter_map(|(kind, at_ms)| Some((kind, at_ms?)));
        self.lower(left.filter(|(_, at_ms)| *at_ms <= until_ms));
    }

    /// The pause of these kinds has ended, and the store has set the wakes of their lanes: at the first
    /// timer of each, which may be due at any time. So the driver reads their groups anew.
    pub(crate) fn resumed(&self, kinds: impl Iterator<Item = TimerKind>) {
        let mut table = self.lock();
        let mut wakes = false;
        for kind in kinds.filter(|_| !planted(Mutant::ResumeLooksAtDueAlone)) {
            let groups = table.groups.iter_mut();
            for group in groups.filter(|group| group.kinds.contains(kind)) {
                group.limit(0);
                wakes = true;
            }
        }
        wakes &= table.asleep_until_ms > 0;
        drop(table);
        if wakes {
            self.signal.raise();
        }
    }

    /// The driver is about to read the whole group: notes what is put from now on.
    pub(crate) fn open(&self, group: usize) {
        if let Some(group) = self.lock().groups.get_mut(group) {
            group.times_ms.clear();
            group.horizon_ms = u64::MAX;
        }
    }

    /// The driver has read the group up to this time.
    pub(crate) fn close(&self, group: usize, horizon_ms: u64) {
        if let Some(group) = self.lock().groups.get_mut(group) {
            group.limit(horizon_ms.min(group.horizon_ms));
        }
    }

    /// Takes the times of a group that have come; says whether there were any. The driver then reads
    /// what is due of the group.
    pub(crate) fn take_due(&self, group: usize, now_ms: u64) -> bool {
        let mut table = self.lock();
        let Some(group) = table.groups.get_mut(group) else {
            return false;
        };
        let later = match now_ms.checked_add(1) {
            Some(next_ms) => group.times_ms.split_off(&next_ms),
            None => BTreeSet::new(),
        };
        !std::mem::replace(&mut group.times_ms, later).is_empty()
    }

    /// The first time noted and the horizon of a group.
    pub(crate) fn next(&self, group: usize) -> (Option<u64>, u64) {
        match self.lock().groups.get(group) {
            Some(group) => (group.times_ms.first().copied(), group.horizon_ms),
            None => (None, u64::MAX),
        }
    }

    /// The driver sleeps until this time, but for what is noted of these groups: the earlier of both.
    pub(crate) fn fall_asleep(&self, until_ms: u64, groups: impl Iterator<Item = usize>) -> u64 {
        let mut table = self.lock();
        let first = groups
            .filter_map(|group| table.groups.get(group))
            .filter_map(|group| group.times_ms.first().copied())
            .min();
        table.asleep_until_ms = first.map_or(until_ms, |first| first.min(until_ms));
        table.asleep_until_ms
    }

    /// The driver is awake and will look before it sleeps again.
    pub(crate) fn wake_up(&self) {
        self.lock().asleep_until_ms = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn now_ms(&self) -> u64 {
        self.runtime.as_ref().map_or(0, Runtime::now_ms)
    }
}

impl GroupLooks {
    fn note(&mut self, at_ms: u64) {
        self.times_ms.insert(at_ms);
        if self.times_ms.len() > TIMES_MAX
            && let Some(last_ms) = self.times_ms.pop_last()
        {
            self.horizon_ms = self.horizon_ms.min(last_ms);
        }
    }

    fn limit(&mut self, horizon_ms: u64) {
        self.horizon_ms = horizon_ms;
        drop(self.times_ms.split_off(&horizon_ms));
    }
}

#[cfg(test)]
mod tests {
    use dueline_testkit::{ManualClock, test_runtime};

    use super::*;

    const KIND: TimerKind = TimerKind(16);

    fn looks() -> Looks {
        let looks = Looks::default();
        let runtime = test_runtime(&ManualClock::new(0));
        looks.watch([KindSet::from_iter([KIND])], &runtime);
        looks.open(0);
        looks
    }

    fn lower(looks: &Looks, at_ms: u64) {
        looks.lower([(KIND, at_ms)].into_iter());
    }

    #[test]
    fn times_before_the_horizon_are_kept_and_later_ones_left_to_it() {
        let looks = looks();
        lower(&looks, 50);
        looks.close(0, 100);
        lower(&looks, 70);
        lower(&looks, 100);
        looks.lower([(TimerKind(99), 1)].into_iter());
        assert_eq!(looks.next(0), (Some(50), 100));
        assert!(looks.take_due(0, 50));
        assert_eq!(looks.next(0), (Some(70), 100));
        assert!(!looks.take_due(0, 69));
        assert!(looks.take_due(0, 70));
        assert_eq!(looks.next(0), (None, 100));
    }

    #[test]
    fn what_is_overdue_is_looked_for_no_earlier_than_its_wake_can_lie() {
        let clock = ManualClock::new(60);
        let looks = Looks::default();
        looks.watch([KindSet::from_iter([KIND])], &test_runtime(&clock));
        looks.open(0);
        lower(&looks, 10);
        assert!(!looks.take_due(0, 59), "the store has set it to 60");
        assert!(looks.take_due(0, 60));
        looks.settled([(KIND, Some(61)), (KIND, None)].into_iter());
        assert_eq!(looks.next(0).0, Some(61));
        looks.settled([(KIND, Some(59))].into_iter());
        assert_eq!(looks.next(0).0, Some(60));
    }

    #[test]
    fn more_times_than_can_be_kept_pull_the_horizon_in_and_lose_none() {
        let looks = looks();
        let put = 2 * TIMES_MAX as u64;
        (0..put).for_each(|at_ms| lower(&looks, put - at_ms));
        let (first_ms, horizon_ms) = looks.next(0);
        assert_eq!(first_ms, Some(1));
        assert_eq!(
            horizon_ms,
            TIMES_MAX as u64 + 1,
            "what was forgotten lies behind it"
        );
    }

    #[test]
    fn the_end_of_a_pause_lets_the_group_be_read_anew() {
        let looks = looks();
        looks.close(0, u64::MAX);
        looks.fall_asleep(500, [0].into_iter());
        looks.resumed([TimerKind(99)].into_iter());
        assert_eq!(looks.next(0).1, u64::MAX);
        looks.resumed([KIND].into_iter());
        assert_eq!(looks.next(0).1, 0, "its wake may lie anywhere");
        assert!(*looks.signal().raised_for_test());
        looks.open(0);
        looks.resumed([KIND].into_iter());
        looks.close(0, u64::MAX);
        assert_eq!(looks.next(0).1, 0, "the reading may have missed it");
    }

    #[test]
    fn only_a_time_before_the_end_of_the_sleep_wakes_the_driver() {
        let looks = looks();
        let woken = || std::mem::take(&mut *looks.signal().raised_for_test());
        lower(&looks, 10);
        assert!(!woken(), "it is awake and will look");
        assert_eq!(looks.fall_asleep(500, [0].into_iter()), 10);
        lower(&looks, 10);
        assert!(!woken());
        lower(&looks, 9);
        assert!(woken());
        looks.wake_up();
        lower(&looks, 1);
        assert!(!woken());
    }
}

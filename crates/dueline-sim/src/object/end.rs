//! The end of a run: nothing goes wrong any more, and what is left is worked off by alarms alone.

use dueline::rows::class;
use dueline::store::{ReadStore, ScanRange};
use dueline::timers::Policy;
use dueline_history::{Octets, Scan, What};
use dueline_testkit::model::script::{KINDS, Op, payload};
use dueline_worker::simulated::StorageFaults;

use super::platform::LOST_AFTER_MS;
use super::world::{INSTANCE, Later, ObjectWorld};
use crate::client::partition;
use crate::disk::{at_once, lane_wakes, octets};
use crate::plan::{RECURRING, STRANGE, VerbSpec, VerbWhat};
use crate::world::{LIVE_US, REST_US};

/// How often somebody comes by while the platform has no alarm, in microseconds.
const VISIT_US: u64 = 1_500_000;
/// Rows read together.
const SCANNED: usize = 1_000;

impl ObjectWorld<'_> {
    /// The storage works, the program knows every kind, alarms come in time, and the clock goes on from
    /// the latest time that it has ever shown.
    pub(super) fn heal(&mut self) {
        self.object.storage().set_faults(StorageFaults::none());
        self.is_healed = true;
        self.is_frozen = false;
        self.delivery = None;
        self.clock.freeze(false);
        self.latest_ms = self.latest_ms.max(self.now_ms());
        let behind_ms = self.latest_ms.saturating_sub(self.now_ms());
        self.clock.jump_ms(i64::try_from(behind_ms).unwrap_or(0));
        self.later
            .retain(|_, later| matches!(later, Later::Again(..)));
        self.is_sync_planned = false;
        self.executor.go_on(INSTANCE);
        self.sync();
        if self.is_old {
            self.evict();
            self.is_old = false;
        }
        // The first who comes by makes the instance that knows every kind.
        self.visit();
    }

    /// Somebody comes by, and again while the platform has no alarm for what is left.
    pub(super) fn visit(&mut self) {
        let look = VerbSpec {
            partition: 0,
            kind: KINDS[0],
            reference: "visit".to_owned(),
            what: VerbWhat::Get,
        };
        self.ask(look, 0);
        if self.is_excused && !self.is_worked_off() {
            self.put_off(VISIT_US, Later::Visit);
        }
    }

    /// Lets everything that is left be worked off; says whether it was.
    pub(super) fn rest(&mut self) -> bool {
        let until_us = self.time.now_us() + REST_US;
        // Clients that were in doubt have asked again before the last pauses end.
        self.run_until(until_us, &mut [].iter().peekable(), |world| {
            world.later.is_empty() && !world.executor.has_requests()
        });
        for number in 0..self.plan.world.partitions {
            for kind in KINDS.into_iter().chain([RECURRING]) {
                let resume = VerbSpec {
                    partition: number,
                    kind,
                    reference: String::new(),
                    what: VerbWhat::Resume,
                };
                self.ask(resume, 3);
            }
        }
        self.run_until(until_us, &mut [].iter().peekable(), Self::is_at_rest);
        self.is_at_rest()
    }

    /// The platform too: it brings nothing that is put before the retry of an alarm that failed, and what it
    /// has lost is noticed late.
    fn is_at_rest(&self) -> bool {
        self.alarms.is_empty()
            && !self.object.waits_for_retry()
            && self.object.unsynced() == 0
            && !self.trusts_a_lost_alarm()
            && self.later.is_empty()
            && !self.executor.has_requests()
            && self.is_worked_off()
    }

    /// Whether the platform has lost the stored alarm and nobody can tell yet: what is put now would wait for
    /// the next request.
    fn trusts_a_lost_alarm(&self) -> bool {
        let stored_ms = self.object.storage().alarm_ms();
        let is_lost = self.object.next_alarm_ms().is_none();
        is_lost && stored_ms.is_some_and(|at_ms| at_ms + LOST_AFTER_MS >= self.now_ms())
    }

    /// Whether what is left waits for a program that knows its kind. If the platform has lost the alarm for
    /// that, it is noticed when it is over: within an hour, and not in this one.
    fn is_worked_off(&self) -> bool {
        self.first_wake_ms().is_none() && self.left().is_empty()
    }

    /// The rows of a partition, past everything that watches.
    fn rows(&self, number: u64) -> Vec<(Octets, Octets)> {
        let Some(instance) = &self.instance else {
            return Vec::new();
        };
        let store = instance.driver.store();
        let mut rows = Vec::new();
        let mut from = ScanRange::new("", vec![0xff; 8], SCANNED);
        loop {
            let scanned = at_once(store.scan(&partition(number), &from));
            let Ok(page) = scanned else { return rows };
            let found = page.rows.into_iter();
            rows.extend(found.map(|(key, value)| (Octets(key), Octets(value))));
            match page.next {
                Some(next) => from = from.after(Some(next)),
                None => return rows,
            }
        }
    }

    /// Timers that should have run: all of known kinds.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for number in 0..self.plan.world.partitions {
            for (key, _) in self.rows(number) {
                let is_timer = key.starts_with(&[class::TIMER, 0]);
                if is_timer && key.get(2) != Some(&STRANGE.0) {
                    left.push(format!("p{number} {}", key.escape_ascii()));
                }
            }
        }
        left
    }

    /// Timers that are due soon are served in time.
    pub(super) fn live(&mut self) {
        for number in 0..self.plan.world.partitions {
            for (kind, due_in_ms) in [(KINDS[0], 1_000), (KINDS[3], 1_500), (KINDS[1], -100)] {
                let probe = VerbSpec {
                    partition: number,
                    kind,
                    reference: "probe".to_owned(),
                    what: VerbWhat::Schedule {
                        due_in_ms,
                        policy: Policy::Replace,
                        named: true,
                        payload: payload(Op::Done, 0, kind, "probe"),
                    },
                };
                self.ask(probe, 0);
            }
        }
        let until_us = self.time.now_us() + LIVE_US;
        self.run_until(until_us, &mut [].iter().peekable(), |_| false);
        let left = self.left();
        if !left.is_empty() {
            self.broken
                .push(format!("probes were not served: {left:?}"));
        }
    }

    pub(super) fn finish(&mut self, rested: bool) {
        let wakes = self.object.storage().wakes().unwrap_or_default();
        if !rested {
            self.broken.push(format!(
                "not at rest: left {:?}, wakes {wakes:?}, alarms {:?}, stored {:?}, next {:?}",
                self.left(),
                self.alarms,
                self.object.storage().alarm_ms(),
                self.object.next_alarm_ms(),
            ));
        }
        for number in 0..self.plan.world.partitions {
            let name = partition(number);
            let scan = Scan {
                partition: octets(name.as_bytes()),
                at_rest: rested,
                rows: self.rows(number),
                wakes: lane_wakes(&wakes, &name),
            };
            self.recorder.event(&self.actor, What::Scan(scan));
        }
    }
}

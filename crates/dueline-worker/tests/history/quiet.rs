//! The end of a history: nothing goes wrong any more, and what is left is worked off by alarms alone.

use dueline_worker::Restored;
use dueline_worker::simulated::StorageFaults;

use super::run::{Ended, History, USER};
use super::script::{KINDS, UNKNOWN};

const ALARMS_MAX: u32 = 600;
/// How late an alarm is taken for lost.
const LOST_AFTER_MS: u64 = 1_001;
const POLLS_MAX: u32 = 20_000;

impl History {
    pub(super) fn quiesce(&mut self) {
        self.object.storage().set_faults(StorageFaults::none());
        self.run_tasks();
        self.resume_all();
        self.run_tasks();
        self.sync();
        if self.is_excused
            && let Some(stored_ms) = self.object.storage().alarm_ms()
        {
            let wait_ms = (stored_ms + LOST_AFTER_MS).saturating_sub(self.now_ms());
            self.clock.advance_ms(wait_ms);
            self.look();
            self.run_tasks();
            self.sync();
        }
        self.is_excused = false;
        self.check_alarm();
        self.check_scheduler();
        for _ in 0..ALARMS_MAX {
            let Some(at_ms) = self.object.next_alarm_ms() else {
                break;
            };
            let wait_ms = at_ms.saturating_sub(self.now_ms());
            self.clock.advance_ms(wait_ms);
            self.latest_ms = self.latest_ms.max(self.now_ms());
            self.deliver();
            self.run_tasks();
        }
        self.check_nothing_is_left();
    }

    /// A request that writes nothing: the alarm is restored, as by each, or nobody sets it.
    fn look(&mut self) {
        let driver = self.instance().expect("nothing goes wrong any more");
        self.spawn(USER, async move {
            let restored = driver.restore().await;
            assert!(!matches!(restored, Ok(Restored::Serving)));
            Ended::Request(restored)
        });
    }

    /// One last request: restores the alarm as each does, and resumes what is paused.
    fn resume_all(&mut self) {
        let driver = self.instance().expect("nothing goes wrong any more");
        let partitions = self.partitions.clone();
        self.spawn(USER, async move {
            let restored = driver.restore().await;
            for partition in &partitions {
                for kind in KINDS {
                    driver.timers().resume(partition, kind).await.unwrap();
                }
            }
            assert!(!matches!(restored, Ok(Restored::Serving)));
            Ended::Request(restored)
        });
    }

    /// Lets all tasks end; when none gets on, time passes.
    fn run_tasks(&mut self) {
        for round in 0..POLLS_MAX {
            let tasks = self.tasks();
            if tasks == 0 {
                return;
            }
            self.poll(round as usize % tasks);
            self.sync();
            if round % 8 == 7
                && let Some(sleep) = self.clock.next_sleep_end()
            {
                self.clock.advance(sleep);
                self.latest_ms = self.latest_ms.max(self.now_ms());
            }
        }
        self.broken.push("the tasks do not end".to_owned());
    }

    fn check_nothing_is_left(&mut self) {
        for partition in self.partitions.clone() {
            let left: Vec<_> = self
                .ledger
                .timers(&partition)
                .into_iter()
                .filter(|(key, _)| key.kind != UNKNOWN)
                .collect();
            if !left.is_empty() {
                self.broken
                    .push(format!("left at the end in {partition}: {left:?}"));
            }
        }
        if let Some(first_ms) = self.first_wake_ms() {
            self.broken
                .push(format!("a wake is left at the end: {first_ms}"));
        }
    }
}

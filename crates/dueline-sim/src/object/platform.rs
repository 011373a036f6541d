//! What the platform does: it makes turns durable, makes and ends instances, and delivers the alarm.

use std::sync::Arc;
use std::task::Poll;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Runtime};
use dueline::timers::TimerKind;
use dueline_history::What;
use dueline_testkit::SequenceEntropy;
use dueline_testkit::model::script::Script;
use dueline_worker::simulated::{AlarmEnd, Delivery};
use dueline_worker::{AlarmInfo, ObjectDriver, ObjectOptions, ObjectStorage, Restored, Start};

use super::storage::{WatchedStorage, poll_idle};
use super::trap::Trapping;
use super::world::{Ended, INSTANCE, Instance, Later, ObjectWorld};
use crate::handlers;
use crate::recorder::Actor;
use crate::tag::Tag;

/// How long a call of the alarm's handler goes on with what comes due meanwhile.
const STAY_MS: u64 = 5_000;
/// When an alarm that was not served passes for lost, in milliseconds behind its time.
pub(super) const LOST_AFTER_MS: u64 = 1_000;
/// More turns than any constructor needs.
const TURNS_OF_CONSTRUCTOR_MAX: u32 = 100;

impl ObjectWorld<'_> {
    /// A turn of the instance has ended; it is durable a little later.
    pub(super) fn end_turn(&mut self) {
        let wrote = match self.object.end_turn() {
            Ok(wrote) => wrote,
            Err(error) => {
                self.broken.push(format!("a turn could not end: {error}"));
                false
            }
        };
        self.stage.end_turn(wrote);
        if !wrote {
            return;
        }
        self.check_alarm();
        let in_us = if self.is_healed {
            0
        } else {
            self.random.below(self.spec.sync_us_max + 1)
        };
        if in_us == 0 {
            self.sync();
        } else if !self.is_sync_planned {
            self.is_sync_planned = true;
            self.put_off(in_us, Later::Sync);
        }
    }

    /// All turns that have ended are durable.
    pub(super) fn sync(&mut self) {
        match self.object.sync() {
            Ok(records) => self.stage.synced(&records),
            Err(error) => self.broken.push(format!("a sync failed: {error}")),
        }
        self.waiting.wake();
        self.excuse_until_set();
        self.check_scheduler();
    }

    /// The excuse ends when the platform has an alarm again, or nothing is pending and the stored alarm
    /// passes for lost with whoever puts something.
    fn excuse_until_set(&mut self) {
        let stored_ms = self.object.storage().alarm_ms();
        let passes_for_lost = stored_ms.is_none_or(|at_ms| at_ms + LOST_AFTER_MS < self.now_ms());
        let is_over = self.object.next_alarm_ms().is_some()
            || (passes_for_lost && self.wanted_alarm_ms().is_none());
        self.is_excused &= !is_over;
    }

    /// The instance; made, and its alarm looked at, if there is none. Nothing else runs meanwhile.
    pub(super) fn instance(&mut self) -> Option<&Instance> {
        if self.instance.is_none() {
            self.instance = Tag::Engine.during(|| self.make_instance());
        }
        self.instance.as_ref()
    }

    fn make_instance(&mut self) -> Option<Instance> {
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        let clients = Actor::new(&format!("clients-0.{epoch}"));
        let runtime = Runtime::new(
            Arc::new(self.clock.clone()),
            Arc::new(self.clock.clone()),
            Arc::new(SequenceEntropy::new(self.random.next_u64())),
        );
        let stage = &self.stage.recorder;
        stage.event(&self.actor, What::Started { node: 0, epoch });
        let script = Script {
            runtime: runtime.clone(),
        };
        let registry = handlers::registry_of(
            Trapping {
                handler: script,
                trap: self.spec.panics_trap.then(|| self.trap.clone()),
            },
            (&self.plan.world, self.node, self.is_old),
            (stage, &self.actor, 0),
            &runtime,
        );
        self.kinds = registry.iter().map(|(kind, _)| kind).collect();
        self.kinds.insert(TimerKind::INVALID);
        let kinds = registry.iter().map(|(kind, _)| kind.0).collect();
        stage.event(&self.actor, What::Registry { node: 0, kinds });
        let storage = WatchedStorage {
            inner: self.object.storage().clone(),
            stage: stage.clone(),
            engine: self.actor.clone(),
            clients: clients.clone(),
            epoch,
            clock: self.clock.clone(),
            budget: self.node.budget,
            waiting: self.waiting.clone(),
        };
        let options = ObjectOptions {
            budget: self.node.budget,
            stay_ms: STAY_MS,
            ticks_max: self.spec.ticks_max,
            drain_ticks_max: self.spec.drain_ticks_max,
            ..ObjectOptions::default()
        };
        let starts = std::mem::take(&mut self.starts);
        let storage = Arc::new(storage) as Arc<dyn ObjectStorage>;
        let opened = ObjectDriver::open(storage, runtime, registry, starts, options);
        self.end_turn();
        let Ok(driver) = opened else {
            self.starts = starts;
            self.check_thrown();
            return None;
        };
        self.construct(&driver);
        Some(Instance { driver, clients })
    }

    /// The constructor looks at the alarm.
    fn construct(&mut self, driver: &ObjectDriver) {
        let constructing = driver.clone();
        let mut restore: BoxFuture<'_, _> = Box::pin(async move { constructing.restore().await });
        for _ in 0..TURNS_OF_CONSTRUCTOR_MAX {
            let polled = poll_idle(&mut restore);
            self.end_turn();
            if let Poll::Ready(restored) = polled {
                return self.ended(Ended::Looked(restored));
            }
        }
        self.broken.push("the constructor does not end".to_owned());
    }

    pub(super) fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Looked(Ok(restored)) => {
                if matches!(restored, Restored::Set { .. }) {
                    self.recorder.mark("an alarm is restored");
                }
                self.excuse_until_set();
                self.check_alarm();
            }
            Ended::Looked(Err(_)) => {
                // A newer program may want an alarm for kinds that the one before it did not know.
                self.is_excused |= self.object.next_alarm_ms().is_none();
                self.check_thrown();
            }
            Ended::Alarm(number, result) => {
                let Some(is_awaited) = self.alarms.remove(&number) else {
                    return;
                };
                if let Err(error) = &result {
                    self.check_alarm_thrown(error);
                }
                if is_awaited {
                    self.end_alarm(if result.is_ok() {
                        AlarmEnd::Well
                    } else {
                        AlarmEnd::Failed
                    });
                }
            }
        }
    }

    fn end_alarm(&mut self, end: AlarmEnd) {
        let now_ms = self.now_ms();
        match self.object.alarm_ended(end, now_ms) {
            Ok(records) => self.stage.synced(&records),
            Err(error) => self.broken.push(format!("an alarm could not end: {error}")),
        }
        self.waiting.wake();
        self.after_alarm(end != AlarmEnd::Well);
        self.check_alarm();
    }

    /// The platform has dealt with the end of an alarm.
    fn after_alarm(&mut self, failed: bool) {
        if failed && self.object.next_alarm_ms().is_none() {
            self.recorder.mark("an alarm is given up");
            self.is_excused = true;
        }
    }

    /// The instance is gone, and with it the last of its turns that were not durable.
    pub(super) fn crash(&mut self) {
        if self.instance.is_none() {
            return;
        }
        self.recorder.mark("an object is evicted");
        let unsynced = self.object.unsynced() as u64;
        let kept = self.random.below(unsynced + 1);
        self.end_instance(kept);
        // The next program knows all kinds, now and then.
        self.is_old &= self.random.chance(50);
    }

    /// The instance was idle and is gone; what was not is cut.
    pub(super) fn evict(&mut self) {
        if self.instance.is_some() {
            self.recorder.mark("an object is evicted");
            self.end_instance(u64::MAX);
        }
    }

    fn end_instance(&mut self, kept: u64) {
        let was_serving = self.object.is_serving();
        self.drop_instance();
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        match self.object.crash(kept, self.now_ms()) {
            Ok(records) => self.stage.synced(&records),
            Err(error) => self.broken.push(format!("a crash failed: {error}")),
        }
        if self.stage.lose() {
            self.recorder.mark("a turn is lost");
        }
        self.note_end();
        if was_serving {
            self.after_alarm(true);
        }
        self.check_alarm();
    }

    /// The instance has trapped: what it wrote stays.
    pub(super) fn trapped(&mut self) {
        if self.instance.is_none() {
            return;
        }
        self.recorder.mark("an object traps");
        self.end_turn();
        let was_serving = self.object.is_serving();
        self.drop_instance();
        if let Err(error) = self.object.trap(self.now_ms()) {
            self.broken.push(format!("a trap failed: {error}"));
        }
        self.starts = if self.spec.tells_of_traps {
            Start::AfterTrap
        } else {
            Start::Fresh
        };
        self.note_end();
        if was_serving {
            self.after_alarm(true);
        }
        self.check_alarm();
    }

    fn drop_instance(&mut self) {
        self.executor.go_on(INSTANCE);
        self.executor.drop_tasks(INSTANCE, false);
        self.instance = None;
        self.alarms.clear();
        self.trap.take();
        self.stage.end_turn(false);
    }

    fn note_end(&mut self) {
        let (node, crashed) = (0, true);
        self.stage
            .recorder
            .event(&self.actor, What::Stopped { node, crashed });
        self.stage.end_turn(false);
    }

    /// By how much the delivery of the next alarm is off: drawn once for each.
    fn delivery(&mut self) -> Option<(u64, i64)> {
        let next_ms = self.object.next_alarm_ms()?;
        let off_ms = match self.delivery {
            Some((at_ms, off_ms)) if at_ms == next_ms => off_ms,
            _ if self.is_healed => 0,
            _ if self.random.chance(self.spec.late_percent) => {
                self.random.pick(&[1, 30, 900, 4_000, 20_000])
            }
            _ => -i64::try_from(self.random.below(self.spec.early_ms_max + 1)).unwrap_or(0),
        };
        self.delivery = Some((next_ms, off_ms));
        Some((next_ms, off_ms))
    }

    fn left_ms(&mut self) -> Option<i64> {
        let (next_ms, off_ms) = self.delivery()?;
        let at_ms = i64::try_from(next_ms).unwrap_or(i64::MAX / 2) + off_ms;
        Some(at_ms - self.clock.wall_ms())
    }

    /// When the next alarm is delivered, if time alone brings it.
    pub(super) fn delivery_at_us(&mut self) -> Option<u64> {
        if self.is_frozen {
            return None;
        }
        let left_ms = u64::try_from(self.left_ms()?).unwrap_or(0).max(1);
        Some(self.time.now_us().saturating_add(left_ms * 1_000))
    }

    /// Delivers the alarm if it is time; whether it was.
    pub(super) fn deliver_if_due(&mut self) -> bool {
        if self.left_ms().is_none_or(|left_ms| left_ms > 0) {
            return false;
        }
        if let Some((_, off_ms)) = self.delivery.take()
            && off_ms != 0
        {
            self.recorder.mark(if off_ms < 0 {
                "an alarm comes early"
            } else {
                "an alarm comes late"
            });
        }
        if self.spec.forgets && !self.executor.has_tasks() {
            self.evict();
        }
        match self.object.deliver(self.now_ms()) {
            Delivery::Run(info) => {
                if info.is_retry {
                    self.recorder.mark("an alarm is tried again");
                }
                let scheduled_at_ms = info.scheduled_at_ms.filter(|_| self.spec.says_when);
                let info = AlarmInfo {
                    scheduled_at_ms,
                    ..info
                };
                self.begin_alarm(info, true);
            }
            Delivery::Cancelled | Delivery::Nothing => {}
        }
        true
    }

    /// An alarm that the platform delivered before and does not wait for.
    pub(super) fn deliver_again(&mut self) {
        if self.alarms.is_empty() && self.instance.is_some() {
            self.recorder.mark("an alarm comes twice");
            self.begin_alarm(AlarmInfo::default(), false);
        }
    }

    /// The number of an alarm, or of ticks that somebody runs by hand.
    pub(super) fn begin_turn(&mut self) -> u64 {
        self.recorder.turn();
        let number = self.next_turn;
        self.next_turn += 1;
        number
    }

    fn begin_alarm(&mut self, info: AlarmInfo, is_awaited: bool) {
        let Some(instance) = self.instance() else {
            if is_awaited {
                self.end_alarm(AlarmEnd::Failed);
            }
            return;
        };
        let driver = instance.driver.clone();
        let number = self.begin_turn();
        self.alarms.insert(number, is_awaited);
        let ends = self.ends.clone();
        let task = Box::pin(async move {
            ends.push(Ended::Alarm(number, driver.on_alarm(info).await));
        });
        self.executor.spawn(INSTANCE, Tag::Turn(number), true, task);
    }
}

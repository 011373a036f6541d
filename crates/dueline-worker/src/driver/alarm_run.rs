//! One alarm, from its delivery to the setting of the next.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::store::{LaneWake, Partition, StoreError};
use dueline::timers::{KindSet, Tick, TickRequest, TickState, TimerKind};

use super::ObjectDriver;
use super::calls::Calls;
use crate::error::AlarmError;
use crate::hold::TurnEnd;
use crate::mutants::{Mutant, planted};
use crate::report::{AlarmReport, Restored};
use crate::store::Turn;
use crate::yielding::give_way;

/// Longest sleep before the wall clock is read again, and shortest break between the ticks of an alarm that has
/// stayed long enough.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Longest time of a tick, in milliseconds. What comes due while handlers wait is seen by the next one.
const TICK_MS_MAX: u64 = 1_000;
/// Between two ticks of a backlog: long enough to end the turn, so that requests which wait go first, and no
/// longer.
const GIVE_WAY: Duration = Duration::from_micros(1);

pub(crate) struct AlarmRun<'a> {
    driver: &'a ObjectDriver,
    calls: Calls,
    began: Duration,
    /// Whether nothing more is started: the store failed a read.
    is_closing: bool,
    /// Whether the alarm has stayed long enough: it ends with its calls, and makes only those that end before
    /// them. Until then nobody else serves what comes due, so what can run has a tick a second.
    is_over: bool,
    /// When it last ticked, counted from its beginning.
    ticked: Duration,
    report: AlarmReport,
}

impl<'a> AlarmRun<'a> {
    pub(crate) fn new(driver: &'a ObjectDriver) -> Self {
        Self {
            driver,
            calls: Calls::default(),
            began: driver.engine.runtime().monotonic(),
            is_closing: false,
            is_over: false,
            ticked: Duration::ZERO,
            report: AlarmReport::default(),
        }
    }

    /// Runs what is due; then what a budget has left of it, and what comes due while calls are under way.
    pub(crate) async fn serve(&mut self) {
        loop {
            if self.may_start() {
                match self.driver.store.due_turns(&self.runnable()) {
                    Ok(turns) => self.tick(turns).await,
                    Err(error) => self.close(&error),
                }
            }
            if self.report.stopped_on_budget && self.may_drain() {
                let pause = self.driver.engine.runtime().sleep(GIVE_WAY);
                self.calls.beside(pause).await;
            } else if self.calls.is_empty() {
                return;
            } else {
                self.wait().await;
            }
        }
    }

    /// Whether this alarm goes on with its backlog. The next one would cost a write of the alarm and wait for
    /// what this one wrote; but a platform bounds the time of each, so its ticks have one budget's in all.
    fn may_drain(&self) -> bool {
        let options = &self.driver.options;
        !self.is_closing
            && !self.is_over
            && self.report.ticks < options.drain_ticks_max
            && self.stayed() < Duration::from_millis(options.budget.max_elapsed_ms)
    }

    fn may_start(&mut self) -> bool {
        let driver = self.driver;
        let first = self.report.ticks == 0;
        if !first
            && (self.stayed() >= driver.stay() || self.report.ticks >= driver.options.ticks_max)
        {
            self.is_over = true;
        }
        !self.is_closing && self.pause().is_zero()
    }

    /// How long it is to the next tick of an alarm that is over.
    fn pause(&self) -> Duration {
        if self.is_over {
            SLEEP_MAX.saturating_sub(self.stayed().saturating_sub(self.ticked))
        } else {
            Duration::ZERO
        }
    }

    /// How long the alarm has been served.
    fn stayed(&self) -> Duration {
        let now = self.driver.engine.runtime().monotonic();
        now.saturating_sub(self.began)
    }

    fn close(&mut self, error: &StoreError) {
        tracing::warn!(%error, "what is due could not be read; the alarm ends");
        self.is_closing = true;
    }

    /// The kinds that could run now: a kind without a free slot keeps its wakes and costs nothing.
    fn runnable(&self) -> KindSet {
        let engine = &self.driver.engine;
        let slots = engine.slots();
        let mut kinds = slots.runnable(&self.driver.store.kinds());
        if self.is_over {
            let left = self.calls.until();
            let left = left.saturating_sub(engine.runtime().monotonic());
            for kind in slots.kinds() {
                let registration = engine.registry().get(kind);
                if registration.is_none_or(|registration| registration.deadline() > left) {
                    kinds.remove(kind);
                }
            }
        }
        kinds
    }

    /// One tick over all partitions, which share one budget, in the order of their wakes.
    async fn tick(&mut self, turns: Vec<Turn>) {
        self.report.stopped_on_budget = false;
        self.ticked = self.stayed();
        if turns.is_empty() {
            return;
        }
        let driver = self.driver;
        let engine = &driver.engine;
        self.report.ticks += 1;
        let mut budget = driver.options.budget;
        budget.max_elapsed_ms = budget.max_elapsed_ms.min(TICK_MS_MAX);
        let mut state = engine.start_tick(budget);
        for turn in turns {
            if planted(Mutant::AlarmBudgetPerPartition) {
                state = engine.start_tick(budget);
            }
            if state.is_exhausted(engine.runtime().monotonic()) {
                self.report.stopped_on_budget = true;
                return;
            }
            self.turn(&turn, &mut state).await;
        }
    }

    async fn turn(&mut self, turn: &Turn, state: &mut TickState) {
        let engine = &self.driver.engine;
        let cautious_until_ms = self.driver.cautious_until_ms();
        let is_cautious = cautious_until_ms
            .is_some_and(|until_ms| turn.wakes.iter().any(|wake| wake.at_ms <= until_ms));
        self.driver.store.be_cautious(is_cautious);
        let request = TickRequest {
            partition: &turn.partition,
            wakes: Some(&turn.wakes),
            cautious_until_ms,
        };
        let began = engine.runtime().monotonic();
        let tick = self.calls.beside(engine.tick(request, state)).await;
        let Tick {
            report,
            calls,
            next_wakes,
        } = tick;
        let storage = &self.driver.store.storage;
        storage.ticked(self.report.ticks, &turn.partition, began, &report);
        for call in calls {
            self.calls.begin(engine, call, self.is_over);
        }
        // A call begins when it is first polled.
        poll_fn(|context| {
            self.calls.poll(context);
            Poll::Ready(())
        })
        .await;
        let did_something = report.total.progressed()
            + report.total.raced
            + report.total.deferred
            + report.quarantined
            > 0
            || report.stopped_on_budget;
        let end = if report.store_full {
            TurnEnd::Full
        } else if report.held_back {
            TurnEnd::Refused
        } else if !did_something && self.is_due_again(&turn.wakes, &next_wakes) {
            TurnEnd::Fruitless
        } else {
            TurnEnd::Well
        };
        self.ended(&turn.partition, end);
        let all = &mut self.report;
        all.turns += 1;
        all.total.add(&report.total);
        all.quarantined += report.quarantined;
        all.stopped_on_budget |= report.stopped_on_budget;
        all.worst_lateness_ms = all.worst_lateness_ms.max(report.worst_lateness_ms);
    }

    fn ended(&mut self, partition: &Partition, end: TurnEnd) {
        if matches!(end, TurnEnd::Refused | TurnEnd::Full) {
            self.report.refused += 1;
            tracing::warn!(%partition, ?end, "the partition is held back");
        }
        self.driver.store.turn_ended(partition, end);
    }

    /// Whether one of the served lanes still has a wake that is due.
    fn is_due_again(&self, served: &[LaneWake], next: &[(TimerKind, Option<u64>)]) -> bool {
        let now_ms = self.driver.engine.runtime().now_ms();
        served.iter().any(|wake| {
            let settled = next.iter().find(|(kind, _)| *kind == wake.kind);
            settled.is_none_or(|(_, next_ms)| next_ms.is_some_and(|next_ms| next_ms <= now_ms))
        })
    }

    /// Waits until a call has been settled, something is due, or the alarm has come earlier.
    async fn wait(&mut self) {
        let mut sleep = self.sleep();
        let store = &self.driver.store;
        poll_fn(|context| {
            let settled = self.calls.poll(context);
            let lowered = store.poll_lowered(context).is_ready();
            let woken = sleep
                .as_mut()
                .is_some_and(|sleep| sleep.as_mut().poll(context).is_ready());
            if settled || lowered || woken {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// A sleep to the next head; none if nothing more is started.
    fn sleep(&mut self) -> Option<BoxFuture<'static, ()>> {
        if self.is_closing {
            return None;
        }
        let runtime = self.driver.engine.runtime();
        match self.driver.store.next_head(&self.runnable()) {
            Ok(head) => {
                let wait =
                    head.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(runtime.now_ms())));
                let wait = if self.is_over {
                    // The calls may have long deadlines. A put that is due earlier is told of.
                    wait?.max(self.pause())
                } else {
                    wait.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
                };
                Some(runtime.sleep(wait))
            }
            Err(error) => {
                self.close(&error);
                None
            }
        }
    }

    /// Sets the alarm for what is next. Its heads are read in the turn in which it is set.
    pub(crate) async fn finish(mut self) -> Result<AlarmReport, AlarmError> {
        let store = &self.driver.store;
        self.report.settled = self.calls.settled();
        let failed = self.report.total.failed + self.report.total.dead;
        if planted(Mutant::AlarmFailureThrown) && failed > 0 {
            return Err(AlarmError::Heads(StoreError::unavailable("a timer failed")));
        }
        let rearmed = if planted(Mutant::AlarmReadBeforeSet) {
            let head = store.next_head(&store.kinds()).map_err(AlarmError::Heads)?;
            give_way().await;
            store.rearm_with_stale(head)?
        } else {
            store.rearm()?
        };
        let is_written = rearmed.write.is_some();
        if let Some(write) = rearmed.write
            && let Err(error) = write.await
        {
            store.forget_alarm();
            // One that nothing needs may stay.
            if rearmed.next_ms.is_some() || planted(Mutant::AlarmDeleteThrown) {
                return Err(AlarmError::Alarm(error));
            }
        }
        self.report.next_alarm_ms = rearmed.next_ms;
        // The write of one that is there already may have been taken back with a transaction of the application.
        if !is_written
            && !planted(Mutant::AlarmAssumedAtTheEnd)
            && rearmed.next_ms.is_some()
            && let Restored::Set { at_ms } = store.see_to_alarm().await?
        {
            self.report.next_alarm_ms = Some(at_ms);
        }
        Ok(self.report)
    }
}

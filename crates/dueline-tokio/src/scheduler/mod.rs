//! The thread that decides: reads wakes, hands out turns, takes note of what became of them, and
//! sleeps exactly until the next.

mod audit;
mod dispatch;
mod events;
mod reading;
mod requeue;
mod sleeping;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dueline::store::WakeStore;
use tokio::sync::oneshot;

use crate::host::wake_exactly;
use crate::mutants::{Mutant, planted};
use crate::plan::{Book, Window, window_of};
use crate::shared::{Settings, Shared};
use crate::signal::{Signal, block_on};
use crate::status::Status;
use crate::wall::{Reading, WallClock};
use crate::work::Stage;
use audit::AuditWalk;
use dispatch::Overruns;
use reading::Reads;
use requeue::RequeueWalk;

/// Runs the scheduler until the driver has stopped. Should it panic, it begins anew: all it knows
/// is read from the store again.
pub(crate) fn run(shared: &Arc<Shared>, store: &Arc<dyn WakeStore>, settings: &Settings) {
    loop {
        let scheduler = Scheduler::new(Arc::clone(shared), Arc::clone(store), settings.clone());
        if catch_unwind(AssertUnwindSafe(|| scheduler.run())).is_ok() {
            return;
        }
        tracing::error!("the scheduler panicked and begins anew: please report it");
        let pause = shared.engine.runtime().sleep(Duration::from_secs(1));
        block_on(pause, &Arc::default());
    }
}

/// What the thread knows. Nothing of it needs to survive: it is all read from the store again.
pub(crate) struct Scheduler {
    shared: Arc<Shared>,
    settings: Settings,
    /// The store as everybody sees it: a read here must see every commit so far, and must not end
    /// a group of commits that the threads are still filling.
    store: Arc<dyn WakeStore>,
    signal: Arc<Signal>,
    answered: Arc<Signal>,
    wall: WallClock,
    windows: Vec<Window>,
    book: Book,
    reads: Reads,
    audit: AuditWalk,
    requeue: RequeueWalk,
    overruns: Overruns,
    drains: Vec<oneshot::Sender<usize>>,
    /// Up to where the clock had come before it was set back, until that has been looked at.
    set_back_from_ms: Option<u64>,
    status: Status,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>, store: Arc<dyn WakeStore>, settings: Settings) -> Self {
        let windows = window_of(shared.engine.registry(), settings.window_max);
        shared.looks.watch(
            windows.iter().map(|window| window.kinds),
            shared.engine.runtime(),
        );
        Self {
            signal: Arc::clone(shared.looks.signal()),
            answered: Arc::default(),
            wall: WallClock::default(),
            book: Book::default(),
            reads: Reads::new(store.capabilities().shared),
            audit: AuditWalk::new(settings.audit),
            requeue: RequeueWalk::new(shared.engine.registry()),
            overruns: Overruns::new(shared.engine.registry(), settings.budget),
            drains: Vec::new(),
            set_back_from_ms: None,
            status: Status::default(),
            windows,
            store,
            shared,
            settings,
        }
    }

    /// Runs until the driver has stopped.
    fn run(mut self) {
        wake_exactly();
        while self.shared.pool.stage() < Stage::Stopped {
            // Waits by a signal of its own: what wakes the scheduler meanwhile must not be taken for
            // an answer of the store, nor be lost.
            let answered = Arc::clone(&self.answered);
            let reading = block_on(self.pass(), &answered);
            self.sleep(reading);
        }
        self.say_last_word();
    }

    /// The same as a task, where nothing runs on threads.
    #[cfg(feature = "simulation")]
    pub(crate) async fn run_as_task(mut self) {
        while self.shared.pool.stage() < Stage::Stopped {
            let reading = self.pass().await;
            self.nap(reading).await;
        }
        self.say_last_word();
    }

    /// The last word of what ran.
    fn say_last_word(&mut self) {
        let reading = self.read_clock();
        self.take_messages(reading);
        self.publish(None);
    }

    /// Looks at everything once.
    async fn pass(&mut self) -> Reading {
        self.shared.looks.wake_up();
        let reading = self.read_clock();
        self.take_messages(reading);
        if self.starts_ticks() {
            self.book.end_holds(reading.monotonic);
            self.look_past_set_back(reading).await;
            self.collect_due(reading.now_ms);
            self.read_store(reading).await;
            self.collect_due(reading.now_ms);
            self.dispatch();
            self.step_audit(reading.monotonic);
            self.step_requeue(reading.monotonic);
        }
        self.report_overruns(reading.monotonic);
        reading
    }

    fn starts_ticks(&self) -> bool {
        self.shared.pool.stage() == Stage::Running && !self.shared.is_paused()
    }

    fn read_clock(&mut self) -> Reading {
        let reading = self
            .wall
            .read(self.shared.engine.runtime().clock().as_ref());
        if reading.jumped_ms != 0 {
            self.status.clock_jumps += 1;
            self.status.last_clock_jump_ms = reading.jumped_ms;
            if reading.jumped_ms < 0 && !planted(Mutant::SetBackNotLookedPast) {
                // The size of a jump is known to a millisecond either way.
                let by_ms = reading.jumped_ms.unsigned_abs().saturating_add(2);
                let was_ms = reading.now_ms.saturating_add(by_ms);
                self.set_back_from_ms = self.set_back_from_ms.max(Some(was_ms));
            }
            tracing::warn!(
                jumped_ms = reading.jumped_ms,
                now_ms = reading.now_ms,
                "the wall clock has jumped: the machine was suspended or its clock was set; \
                 timers go by the new time",
            );
        }
        reading
    }

    /// Tells those who wait for it that nothing is left to run.
    fn answer_drains(&mut self, now_ms: u64) {
        if self.drains.is_empty() || !self.starts_ticks() {
            return;
        }
        // Whoever asked behind the pass's reading of the clock means what is due by then.
        let now_ms = now_ms.max(self.shared.engine.runtime().now_ms());
        let busy = self.book.queued() > 0
            || self.book.running() > 0
            || self.shared.calls.outstanding() > 0
            // What has just ended is not counted yet.
            || self.shared.inbox.has_events()
            || self.windows.iter().any(|window| window.has_due(now_ms))
            || (0..self.windows.len()).any(|index| {
                let (first_ms, horizon_ms) = self.shared.looks.next(index);
                first_ms.is_some_and(|first_ms| first_ms <= now_ms) || horizon_ms <= now_ms
            });
        if !busy {
            let held = self.book.held();
            for waiting in self.drains.drain(..) {
                // Who has given up waiting needs no answer.
                let _ = waiting.send(held);
            }
        }
    }

    /// Shows the world what goes on.
    fn publish(&mut self, next_wake_ms: Option<u64>) {
        let refused_since_ms = self.refused_since_ms();
        let status = &mut self.status;
        status.paused = self.shared.is_paused();
        status.stopping = self.shared.pool.stage() > Stage::Running;
        status.ticks_running = self.book.running();
        status.calls_running = self.shared.calls.running();
        status.partitions_queued = self.book.queued();
        status.partitions_held_back = self.book.held();
        status.refused_since_ms = refused_since_ms;
        let in_windows: usize = self.windows.iter().map(Window::len).sum();
        status.wakes_in_memory = in_windows + self.book.wakes();
        status.wakes_overdue = self.book.waiting();
        status.next_wake_ms = next_wake_ms;
        *self.shared.status() = *status;
    }

    /// The moment by the wall clock as it stands now, so that it stays right when that is set.
    fn refused_since_ms(&self) -> Option<u64> {
        let since = self.book.refused_since()?;
        let ago = self.monotonic().saturating_sub(since);
        let ago_ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.shared.engine.runtime().now_ms();
        Some(now_ms.saturating_sub(ago_ms))
    }

    fn monotonic(&self) -> Duration {
        self.shared.engine.runtime().monotonic()
    }
}

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use dueline::BoxFuture;
use dueline::store::WakeStore;

use super::pool::{Job, Pool, Stage};
use crate::busy::BusyToken;
use crate::signal::Signal;

/// One thread that polls many jobs in turn.
///
/// It takes and polls all it can before it tells the store that it is about to wait, so that the
/// commits of many ticks become one transaction.
pub(super) struct Executor {
    index: usize,
    pool: Arc<Pool>,
    store: Arc<dyn WakeStore>,
    ready: Arc<Ready>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    jobs_max: usize,
    stage: Stage,
}

struct Slot {
    running: Option<Running>,
    waker: Waker,
    mark: Arc<SlotWaker>,
}

struct Running {
    future: BoxFuture<'static, ()>,
    is_tick: bool,
    _busy: BusyToken,
}

/// Slots whose futures are to be polled.
struct Ready {
    slots: Mutex<VecDeque<usize>>,
    signal: Arc<Signal>,
}

struct SlotWaker {
    slot: usize,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.ready.push(self.slot);
            self.ready.signal.raise();
        }
    }
}

impl Ready {
    fn push(&self, slot: usize) {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(slot);
    }

    fn pop(&self) -> Option<usize> {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    fn is_empty(&self) -> bool {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}

impl Executor {
    pub(super) fn new(
        index: usize,
        pool: Arc<Pool>,
        store: Arc<dyn WakeStore>,
        signal: Arc<Signal>,
        jobs_max: usize,
    ) -> Self {
        Self {
            index,
            pool,
            store,
            ready: Arc::new(Ready {
                slots: Mutex::default(),
                signal,
            }),
            slots: Vec::new(),
            free: Vec::new(),
            jobs_max: jobs_max.max(1),
            stage: Stage::Running,
        }
    }

    /// Runs jobs until the pool is stopped.
    pub(super) fn run(mut self) {
        loop {
            self.follow_stage();
            if self.stage == Stage::Stopped {
                break;
            }
            if let Some(slot) = self.ready.pop() {
                self.poll(slot);
                continue;
            }
            if let Some(job) = self.pool.take(self.index, self.live() < self.jobs_max) {
                self.begin(job);
                continue;
            }
            // What this ends or commits may make jobs of this thread ready.
            guarded(|| self.store.before_park());
            if self.ready.is_empty() {
                self.ready.signal.wait();
            }
        }
        self.drop_jobs(|_| true);
        guarded(|| self.store.before_park());
    }

    fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Drops ticks under way once it is too late for them.
    fn follow_stage(&mut self) {
        let stage = self.pool.stage();
        if stage == self.stage {
            return;
        }
        self.stage = stage;
        if stage >= Stage::Releasing {
            self.drop_jobs(|job| job.is_tick);
        }
    }

    fn drop_jobs(&mut self, ended: impl Fn(&Running) -> bool) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if let Some(job) = slot.running.take_if(|running| ended(running)) {
                self.free.push(index);
                guarded(|| drop(job));
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let (future, is_tick, busy) = job.into_parts();
        let slot = self.free.pop().unwrap_or_else(|| self.add_slot());
        if let Some(place) = self.slots.get_mut(slot) {
            place.running = Some(Running {
                future,
                is_tick,
                _busy: busy,
            });
        }
        // It sees what was committed before it began, whatever other jobs of this thread have read.
        guarded(|| self.store.end_reads());
        self.poll(slot);
    }

    fn add_slot(&mut self) -> usize {
        let slot = self.slots.len();
        let mark = Arc::new(SlotWaker {
            slot,
            queued: AtomicBool::new(false),
            ready: Arc::clone(&self.ready),
        });
        self.slots.push(Slot {
            running: None,
            waker: Waker::from(Arc::clone(&mark)),
            mark,
        });
        slot
    }

    fn poll(&mut self, slot: usize) {
        let Some(place) = self.slots.get_mut(slot) else {
            return;
        };
        // Lowered before the poll: a wake during it asks for another one.
        place.mark.queued.store(false, Ordering::Release);
        let Some(running) = &mut place.running else {
            return;
        };
        let mut context = Context::from_waker(&place.waker);
        let future = running.future.as_mut();
        let over = match catch_unwind(AssertUnwindSafe(|| future.poll(&mut context))) {
            Ok(Poll::Pending) => false,
            Ok(Poll::Ready(())) => true,
            Err(panic) => {
                log_panic(panic.as_ref());
                true
            }
        };
        if over {
            let ended = place.running.take();
            self.free.push(slot);
            guarded(|| drop(ended));
        }
    }
}

/// Runs what may panic in a destructor of somebody else's; the thread must go on.
fn guarded(run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        log_panic(panic.as_ref());
    }
}

fn log_panic(panic: &(dyn Any + Send)) {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(panic = text, "a tick panicked; its partition is held back");
}

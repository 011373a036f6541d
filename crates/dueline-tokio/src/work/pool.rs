use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use dueline::BoxFuture;
use dueline::store::WakeStore;

use super::executor::Executor;
use crate::busy::{Busy, BusyToken};
use crate::signal::Signal;

/// Something for a thread to run.
pub(crate) struct Job {
    future: BoxFuture<'static, ()>,
    /// A tick: not started once the driver stops, and dropped when the time to finish is over.
    pub(super) is_tick: bool,
    pub(super) _busy: BusyToken,
}

impl Job {
    pub(crate) fn into_parts(self) -> (BoxFuture<'static, ()>, bool, BusyToken) {
        (self.future, self.is_tick, self._busy)
    }
}

/// Jobs, and the threads that run them.
pub(crate) struct Pool {
    table: Mutex<Table>,
    signals: Vec<Arc<Signal>>,
    busy: Busy,
    alive: Busy,
}

#[derive(Default)]
struct Table {
    jobs: VecDeque<Job>,
    /// Threads that wait and have room.
    waiting: Vec<usize>,
    stage: Stage,
}

/// What the threads still do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Everything.
    #[default]
    Running,
    /// No new ticks.
    Finishing,
    /// No ticks at all: those under way are dropped. Settles and releases run.
    Releasing,
    /// Nothing: the threads end.
    Stopped,
}

impl Pool {
    pub(crate) fn new(threads: usize, busy: Busy) -> Self {
        Self {
            table: Mutex::new(Table::default()),
            signals: (0..threads.max(1)).map(|_| Arc::default()).collect(),
            busy,
            alive: Busy::default(),
        }
    }

    /// Starts the threads, each running at most `jobs_max` jobs at a time.
    pub(crate) fn start(
        self: &Arc<Self>,
        store: &Arc<dyn WakeStore>,
        jobs_max: usize,
    ) -> io::Result<()> {
        for (index, signal) in self.signals.iter().enumerate() {
            let (pool, store, signal) = (Arc::clone(self), Arc::clone(store), Arc::clone(signal));
            let alive = self.alive.begin();
            thread::Builder::new()
                .name(format!("dueline-tick-{index}"))
                .spawn(move || {
                    Executor::new(index, pool, store, signal, jobs_max).run();
                    drop(alive);
                })?;
        }
        Ok(())
    }

    /// Queues a tick; dropped unstarted if the driver is stopping.
    pub(crate) fn push_tick(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.push(Box::pin(future), true, false);
    }

    /// Queues anything else, behind what waits.
    pub(crate) fn push_job(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.push(Box::pin(future), false, false);
    }

    /// Queues what frees a slot, in front of what waits.
    pub(crate) fn push_urgent(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.push(Box::pin(future), false, true);
    }

    fn push(&self, future: BoxFuture<'static, ()>, is_tick: bool, urgent: bool) {
        let job = Job {
            future,
            is_tick,
            _busy: self.busy.begin(),
        };
        let mut table = self.lock();
        let refused = table.stage == Stage::Stopped || (is_tick && table.stage > Stage::Running);
        let woken = if refused { None } else { table.waiting.pop() };
        let dropped = if refused {
            Some(job)
        } else if urgent {
            table.jobs.push_front(job);
            None
        } else {
            table.jobs.push_back(job);
            None
        };
        drop(table);
        // Outside the lock: a dropped job may report its end.
        drop(dropped);
        match woken.and_then(|index| self.signals.get(index)) {
            Some(signal) => signal.raise(),
            // All are full or at work. A full one has no room for a tick, but takes anything else.
            None if !is_tick => self.signals.iter().for_each(|signal| signal.raise()),
            None => {}
        }
    }

    /// Goes on to a later stage. Jobs that it ends before they have begun are dropped.
    pub(crate) fn enter(&self, stage: Stage) {
        let mut table = self.lock();
        table.stage = table.stage.max(stage);
        let stage = table.stage;
        let jobs = std::mem::take(&mut table.jobs);
        let (ended, kept): (VecDeque<Job>, VecDeque<Job>) = jobs
            .into_iter()
            .partition(|job| stage == Stage::Stopped || (stage >= Stage::Finishing && job.is_tick));
        table.jobs = kept;
        drop(table);
        drop(ended);
        for signal in &self.signals {
            signal.raise();
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.lock().stage
    }

    /// The threads that have not ended.
    pub(crate) fn alive(&self) -> &Busy {
        &self.alive
    }

    /// A job for this thread: any if it has room for a tick, else only another. A thread with room
    /// that gets none is noted as waiting.
    pub(crate) fn take(&self, index: usize, has_room: bool) -> Option<Job> {
        let mut table = self.lock();
        table.waiting.retain(|waiting| *waiting != index);
        let job = table.jobs.pop_front_if(|job| has_room || !job.is_tick);
        if job.is_none() && has_room {
            table.waiting.push(index);
        }
        job
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.signals.len())
            .finish_non_exhaustive()
    }
}

//! The driver's pool: jobs, the thread that runs them, and the stages of a stop.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use dueline::memory::MemoryStore;
use dueline::store::WakeStore;
use dueline_testkit::ManualClock;

use super::driver::busy::Busy;
use super::driver::signal::block_on;
use super::driver::work::{Pool, Stage};
use super::explore;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::{Arc, Mutex, PoisonError};
use super::thread;
use crate::model::Model;

/// A pool with one thread, and what counts its jobs.
fn pool() -> (Arc<Pool>, Busy) {
    let busy = Busy::default();
    let pool = Arc::new(Pool::new(1, busy.clone()));
    let store: Arc<dyn WakeStore> = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(0))));
    assert!(pool.start(&store, 1).is_ok());
    (pool, busy)
}

/// What becomes of a job.
#[derive(Clone, Default)]
struct Fate {
    ran: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct Counted {
    fate: Fate,
    ran: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.ran {
            self.fate.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Fate {
    fn job(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut counted = Counted {
            fate: self.clone(),
            ran: false,
        };
        async move {
            counted.ran = true;
            counted.fate.ran.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn known(&self) -> usize {
        self.ran.load(Ordering::Relaxed) + self.dropped.load(Ordering::Relaxed)
    }
}

pub(crate) const A_JOB_RUNS_OR_IS_DROPPED: Model = Model {
    name: "a_job_runs_or_is_dropped",
    bugs: &[
        "push_looks_at_the_stage_before_it_locks",
        "thread_is_noted_as_waiting_too_late",
        "stage_is_entered_and_nobody_told",
    ],
    explore: |effort| {
        explore(3, effort, || job_runs_or_is_dropped(true))
            + explore(3, effort, || job_runs_or_is_dropped(false))
            + explore(3, effort, a_job_runs_without_a_stop)
    },
};

/// A thread pushes a tick and a job while another stops the pool.
fn job_runs_or_is_dropped(finishes: bool) {
    let (pool, busy) = pool();
    let fate = Fate::default();
    let (of_pushes, fates) = (Arc::clone(&pool), fate.clone());
    let pushes = thread::spawn(move || {
        of_pushes.push_tick(fates.job());
        of_pushes.push_job(fates.job());
    });
    if finishes {
        pool.enter(Stage::Finishing);
        block_on(busy.idle(), &Arc::default());
    }
    pool.enter(Stage::Stopped);
    block_on(pool.alive().idle(), &Arc::default());
    let ran = fate.ran.load(Ordering::Relaxed);
    assert!(pushes.join().is_ok());
    block_on(busy.idle(), &Arc::default());
    assert_eq!(fate.known(), 2);
    assert_eq!(fate.ran.load(Ordering::Relaxed), ran, "ran behind the end");
}

/// Jobs run although nobody asks for an end.
fn a_job_runs_without_a_stop() {
    let (pool, busy) = pool();
    let fate = Fate::default();
    let (of_pushes, fates) = (Arc::clone(&pool), fate.clone());
    let pushes = thread::spawn(move || of_pushes.push_tick(fates.job()));
    pool.push_tick(fate.job());
    assert!(pushes.join().is_ok());
    block_on(busy.idle(), &Arc::default());
    assert_eq!(fate.ran.load(Ordering::Relaxed), 2);
    pool.enter(Stage::Stopped);
}

pub(crate) const A_WOKEN_JOB_IS_POLLED: Model = Model {
    name: "a_woken_job_is_polled",
    bugs: &[
        "wake_during_a_poll_is_taken_for_an_old_one",
        "thread_is_woken_before_its_job_is_ready",
    ],
    explore: |effort| explore(4, effort, a_woken_job_is_polled),
};

/// A job waits for two things that another thread does, each with a wake.
fn a_woken_job_is_polled() {
    #[derive(Default)]
    struct Table {
        done: usize,
        waker: Option<Waker>,
    }
    let (pool, busy) = pool();
    let table = Arc::new(Mutex::new(Table::default()));
    let of_job = Arc::clone(&table);
    pool.push_tick(poll_fn(move |context| {
        let mut table = of_job.lock().unwrap_or_else(PoisonError::into_inner);
        table.waker = Some(context.waker().clone());
        if table.done == 2 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    for _ in 0..2 {
        let waker = {
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            table.done += 1;
            table.waker.clone()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    block_on(busy.idle(), &Arc::default());
    pool.enter(Stage::Stopped);
}

pub(crate) const ALL_WHO_WAIT_FOR_IDLE_GO_ON: Model = Model {
    name: "all_who_wait_for_idle_go_on",
    bugs: &["one_of_those_that_wait_for_idle_is_woken"],
    explore: |effort| explore(3, effort, all_who_wait_for_idle_go_on),
};

/// Two threads wait for two things to end.
fn all_who_wait_for_idle_go_on() {
    let busy = Busy::default();
    let running = [busy.begin(), busy.begin()];
    let of_other = busy.clone();
    let other = thread::spawn(move || block_on(of_other.idle(), &Arc::default()));
    let of_ends = thread::spawn(move || running.into_iter().for_each(drop));
    block_on(busy.idle(), &Arc::default());
    assert!(other.join().is_ok() && of_ends.join().is_ok());
    assert_eq!(busy.running(), 0);
}

//! One thread, many tasks, and a seed that says which goes on next.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use dueline::BoxFuture;
use dueline_testkit::model::Random;

use crate::tag::Tag;

/// Whose a task is: dropped together when the owner crashes.
pub type Owner = u32;

/// Tasks under way. Only those that were woken are polled, one at a time, in an order drawn from the
/// seed; so a run is its seed.
pub struct Executor {
    tasks: BTreeMap<u64, Task>,
    queue: Arc<Queue>,
    /// Owners that stand still, and their tasks that were woken meanwhile.
    suspended: BTreeMap<Owner, Vec<u64>>,
}

struct Task {
    owner: Owner,
    tag: Tag,
    is_tick: bool,
    future: BoxFuture<'static, ()>,
    waker: Waker,
    mark: Arc<Mark>,
}

/// What tasks ask of the executor while one of them is being polled.
#[derive(Debug, Default)]
struct Queue {
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    next_number: u64,
    ready: Vec<u64>,
    begun: Vec<(u64, Owner, Tag, BoxFuture<'static, ()>)>,
    ended: Vec<u64>,
}

/// Whether a task is to be polled.
struct Mark {
    number: u64,
    queued: AtomicBool,
    queue: Arc<Queue>,
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.queue.lock().ready.push(self.number);
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins tasks from within tasks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Spawner {
    queue: Arc<Queue>,
    owner: Owner,
}

impl Spawner {
    /// Begins a task and returns its number.
    pub fn begin(&self, task: BoxFuture<'static, ()>) -> u64 {
        let mut asked = self.queue.lock();
        asked.next_number += 1;
        let number = asked.next_number;
        // What is left of a client's commit is still the client's; a call is no part of a tick.
        let tag = match Tag::current() {
            Tag::Request(request) => Tag::Request(request),
            Tag::Turn(_) | Tag::Engine => Tag::Engine,
        };
        asked.begun.push((number, self.owner, tag, task));
        number
    }

    /// Ends a task where it stands.
    pub fn end(&self, number: u64) {
        self.queue.lock().ended.push(number);
    }
}

impl Executor {
    /// Nothing under way.
    pub fn new() -> Self {
        Self {
            tasks: BTreeMap::new(),
            queue: Arc::default(),
            suspended: BTreeMap::new(),
        }
    }

    /// Lets an owner stand still: none of its tasks is polled until it goes on.
    pub fn suspend(&mut self, owner: Owner) {
        self.suspended.entry(owner).or_default();
    }

    /// Lets an owner go on that stands still.
    pub fn go_on(&mut self, owner: Owner) {
        let woken = self.suspended.remove(&owner).unwrap_or_default();
        self.queue.lock().ready.extend(woken);
    }

    /// A handle to begin tasks of this owner.
    pub fn spawner(&self, owner: Owner) -> Spawner {
        Spawner {
            queue: Arc::clone(&self.queue),
            owner,
        }
    }

    /// Begins a task.
    pub fn spawn(&mut self, owner: Owner, tag: Tag, is_tick: bool, future: BoxFuture<'static, ()>) {
        let number = {
            let mut asked = self.queue.lock();
            asked.next_number += 1;
            asked.next_number
        };
        self.insert(number, owner, tag, is_tick, future);
    }

    fn insert(
        &mut self,
        number: u64,
        owner: Owner,
        tag: Tag,
        is_tick: bool,
        future: BoxFuture<'static, ()>,
    ) {
        let mark = Arc::new(Mark {
            number,
            queued: AtomicBool::new(true),
            queue: Arc::clone(&self.queue),
        });
        let task = Task {
            owner,
            tag,
            is_tick,
            future,
            waker: Waker::from(Arc::clone(&mark)),
            mark,
        };
        self.tasks.insert(number, task);
        self.queue.lock().ready.push(number);
    }

    /// Drops the tasks of this owner, or only those that are ticks.
    pub fn drop_tasks(&mut self, owner: Owner, only_ticks: bool) {
        self.take_asked();
        let ends = |task: &Task| task.owner == owner && (task.is_tick || !only_ticks);
        let numbers: Vec<u64> = self
            .tasks
            .iter()
            .filter(|(_, task)| ends(task))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            drop(self.tasks.remove(&number));
        }
    }

    /// Whether anything is under way.
    pub fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Whether a client's request is under way.
    pub fn has_requests(&self) -> bool {
        let is_request = |task: &Task| matches!(task.tag, Tag::Request(_));
        self.tasks.values().any(is_request)
    }

    /// Polls one of the tasks that are ready; says whether there was one.
    pub fn step(&mut self, random: &mut Random) -> bool {
        self.take_asked();
        let number = {
            let mut asked = self.queue.lock();
            if asked.ready.is_empty() {
                return false;
            }
            let place = random.below(asked.ready.len() as u64);
            asked
                .ready
                .swap_remove(usize::try_from(place).unwrap_or_default())
        };
        let Some(task) = self.tasks.get_mut(&number) else {
            return true;
        };
        if let Some(woken) = self.suspended.get_mut(&task.owner) {
            woken.push(number);
            return true;
        }
        task.mark.queued.store(false, Ordering::Relaxed);
        let waker = task.waker.clone();
        let mut context = Context::from_waker(&waker);
        let polled = task.tag.during(|| task.future.as_mut().poll(&mut context));
        if polled.is_ready() {
            drop(self.tasks.remove(&number));
        }
        true
    }

    fn take_asked(&mut self) {
        loop {
            let (begun, ended) = {
                let mut asked = self.queue.lock();
                (
                    std::mem::take(&mut asked.begun),
                    std::mem::take(&mut asked.ended),
                )
            };
            if begun.is_empty() && ended.is_empty() {
                return;
            }
            for (number, owner, tag, future) in begun {
                self.insert(number, owner, tag, false, future);
            }
            for number in ended {
                drop(self.tasks.remove(&number));
            }
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("ready", &self.ready)
            .finish_non_exhaustive()
    }
}

//! Running futures. The host makes every poll, so it sees a trap of any of them.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

use crate::platform::Host;

/// A task, what it settles, and what wakes it.
struct Task {
    /// Out of its place while it is polled: it may spawn others.
    future: Option<PromiseFuture>,
    resolve: Function,
    reject: Function,
    host: Host,
    wakes: Arc<TaskWake>,
}

thread_local! {
    static TASKS: RefCell<Tasks> = const { RefCell::new(Tasks::new()) };
}

/// The tasks by their places. A place is used again once its task is done: a waker that outlives its task
/// polls another in vain, which a future must bear.
struct Tasks {
    places: Vec<Option<Task>>,
    free: Vec<u32>,
}

impl Tasks {
    const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Makes a task for the place that it will have.
    fn insert(&mut self, make: impl FnOnce(u32) -> Task) -> Arc<TaskWake> {
        let free = self.free.pop();
        // More places would not fit in memory.
        let id = free.unwrap_or(self.places.len() as u32);
        let task = make(id);
        let wakes = Arc::clone(&task.wakes);
        match self.places.get_mut(id as usize) {
            Some(place) => *place = Some(task),
            None => self.places.push(Some(task)),
        }
        wakes
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut Task> {
        self.places.get_mut(id as usize)?.as_mut()
    }

    fn remove(&mut self, id: u32) -> Option<Task> {
        let task = self.places.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(task)
    }
}

struct TaskWake {
    id: u32,
    is_asked: AtomicBool,
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_asked.swap(true, Ordering::Relaxed) {
            return;
        }
        let host =
            TASKS.with_borrow_mut(|tasks| tasks.get_mut(self.id).map(|task| task.host.clone()));
        if let Some(host) = host {
            host.wake(self.id);
        }
    }
}

/// What a promise comes to. Boxed, so that there is one task's code and not one for each verb.
pub(crate) type PromiseFuture = Pin<Box<dyn Future<Output = Result<JsValue, JsValue>>>>;

/// A promise of what the future comes to; it is polled first in the next microtask.
pub(crate) fn promise(host: &Host, future: PromiseFuture) -> Promise {
    let mut settlers: Option<(Function, Function)> = None;
    let promise = Promise::new(&mut |resolve, reject| settlers = Some((resolve, reject)));
    if let Some((resolve, reject)) = settlers {
        let wakes = TASKS.with_borrow_mut(|tasks| {
            tasks.insert(|id| Task {
                future: Some(future),
                resolve,
                reject,
                host: host.clone(),
                wakes: Arc::new(TaskWake {
                    id,
                    is_asked: AtomicBool::new(false),
                }),
            })
        });
        wakes.wake_by_ref();
    }
    promise
}

/// Polls a task. The host calls it in a microtask of its own for each [`Host::wake`].
#[wasm_bindgen]
#[allow(unreachable_pub, reason = "the host calls it")]
pub fn poll_task(id: u32) {
    let taken = TASKS.with_borrow_mut(|tasks| {
        let task = tasks.get_mut(id)?;
        Some((task.future.take()?, Arc::clone(&task.wakes)))
    });
    let Some((mut future, wakes)) = taken else {
        return;
    };
    wakes.is_asked.store(false, Ordering::Relaxed);
    let waker = Waker::from(wakes);
    let done = future.as_mut().poll(&mut Context::from_waker(&waker));
    // What a future holds may wake or spawn others when it goes, so the map is left alone meanwhile.
    let Poll::Ready(done) = done else {
        TASKS.with_borrow_mut(|tasks| {
            if let Some(task) = tasks.get_mut(id) {
                task.future = Some(future);
            }
        });
        return;
    };
    drop(future);
    if let Some(task) = TASKS.with_borrow_mut(|tasks| tasks.remove(id)) {
        // A promise's own functions do not throw.
        let _ = match done {
            Ok(value) => task.resolve.call1(&JsValue::UNDEFINED, &value),
            Err(error) => task.reject.call1(&JsValue::UNDEFINED, &error),
        };
    }
}

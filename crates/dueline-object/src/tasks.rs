//! Running futures. The host makes every poll, so it sees a trap of any of them.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use dueline::ordered::OrderedMap;
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
    static TASKS: RefCell<OrderedMap<u32, Task>> = const { RefCell::new(OrderedMap::new()) };
    static LAST: Cell<u32> = const { Cell::new(0) };
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
        let host = TASKS.with_borrow(|tasks| tasks.get(&self.id).map(|task| task.host.clone()));
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
        let id = LAST.get().wrapping_add(1);
        LAST.set(id);
        let wakes = Arc::new(TaskWake {
            id,
            is_asked: AtomicBool::new(false),
        });
        let task = Task {
            future: Some(future),
            resolve,
            reject,
            host: host.clone(),
            wakes: Arc::clone(&wakes),
        };
        TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
        wakes.wake_by_ref();
    }
    promise
}

/// Polls a task. The host calls it in a microtask of its own for each [`Host::wake`].
#[wasm_bindgen]
#[allow(unreachable_pub, reason = "the host calls it")]
pub fn poll_task(id: u32) {
    let taken = TASKS.with_borrow_mut(|tasks| {
        let task = tasks.get_mut(&id)?;
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
            if let Some(task) = tasks.get_mut(&id) {
                task.future = Some(future);
            }
        });
        return;
    };
    drop(future);
    if let Some(task) = TASKS.with_borrow_mut(|tasks| tasks.remove(&id)) {
        // A promise's own functions do not throw.
        let _ = match done {
            Ok(value) => task.resolve.call1(&JsValue::UNDEFINED, &value),
            Err(error) => task.reject.call1(&JsValue::UNDEFINED, &error),
        };
    }
}

//! Running futures. The host makes every poll, so it sees a trap of any of them.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use dueline::ordered::OrderedMap;
use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

use crate::platform::Host;

type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// A task, who polls it, and what wakes it.
struct Task {
    /// Out of its place while it is polled: it may spawn others.
    future: Option<TaskFuture>,
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

/// A promise of what the future comes to; it is polled first in the next microtask.
pub(crate) fn promise(
    host: &Host,
    future: impl Future<Output = Result<JsValue, JsValue>> + 'static,
) -> Promise {
    let mut settlers: Option<(Function, Function)> = None;
    let promise = Promise::new(&mut |resolve, reject| settlers = Some((resolve, reject)));
    if let Some((resolve, reject)) = settlers {
        spawn(host, async move {
            // A promise's own functions do not throw.
            let _ = match future.await {
                Ok(value) => resolve.call1(&JsValue::UNDEFINED, &value),
                Err(error) => reject.call1(&JsValue::UNDEFINED, &error),
            };
        });
    }
    promise
}

fn spawn(host: &Host, future: impl Future<Output = ()> + 'static) {
    let id = LAST.get().wrapping_add(1);
    LAST.set(id);
    let wakes = Arc::new(TaskWake {
        id,
        is_asked: AtomicBool::new(false),
    });
    let task = Task {
        future: Some(Box::pin(future)),
        host: host.clone(),
        wakes: Arc::clone(&wakes),
    };
    TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
    wakes.wake_by_ref();
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
    let is_over = future
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_ready();
    // What a future holds may wake or spawn others when it goes, so the map is left alone meanwhile.
    if is_over {
        drop(future);
        drop(TASKS.with_borrow_mut(|tasks| tasks.remove(&id)));
        return;
    }
    TASKS.with_borrow_mut(|tasks| {
        if let Some(task) = tasks.get_mut(&id) {
            task.future = Some(future);
        }
    });
}

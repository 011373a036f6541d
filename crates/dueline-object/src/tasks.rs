//! Running futures. The host makes every poll, so it sees a trap of any of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

use crate::platform::Host;

/// A task, and what wakes it.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    wakes: Arc<TaskWake>,
}

thread_local! {
    static TASKS: RefCell<BTreeMap<u32, Task>> = const { RefCell::new(BTreeMap::new()) };
    static HOSTS: RefCell<BTreeMap<u32, Host>> = const { RefCell::new(BTreeMap::new()) };
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
        let host = HOSTS.with_borrow(|hosts| hosts.get(&self.id).cloned());
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
        future: Box::pin(future),
        wakes: Arc::clone(&wakes),
    };
    TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
    HOSTS.with_borrow_mut(|hosts| hosts.insert(id, host.clone()));
    wakes.wake_by_ref();
}

/// Polls a task. The host calls it in a microtask of its own for each [`Host::wake`].
#[wasm_bindgen]
pub fn poll_task(id: u32) {
    // Out of the map while it is polled: it may spawn others.
    let Some(mut task) = TASKS.with_borrow_mut(|tasks| tasks.remove(&id)) else {
        return;
    };
    task.wakes.is_asked.store(false, Ordering::Relaxed);
    let waker = Waker::from(Arc::clone(&task.wakes));
    match task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Pending => {
            TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
        }
        Poll::Ready(()) => {
            HOSTS.with_borrow_mut(|hosts| hosts.remove(&id));
        }
    }
}

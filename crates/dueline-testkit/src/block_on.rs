use std::future::Future;
use std::pin::pin;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Condvar;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// How long a future may wait for another thread before the test is given up.
const STUCK: Duration = Duration::from_secs(60);

/// Runs a future that needs no runtime, on this thread.
///
/// A future that is not ready may be waiting for another thread, such as a store's writer: then this
/// thread waits too.
///
/// # Panics
/// If the future can never be woken, because nobody kept its waker; and if nothing has woken it for
/// 60 s. A future that waits for a [`ManualClock`](crate::ManualClock) ends like that unless another
/// thread moves the clock: poll such a one by hand. On `wasm32`, which has one thread, whenever the future is
/// not ready and has not woken itself.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // Two are ours: the one here and the one in the context's waker.
        let kept = Arc::strong_count(&signal) > 2;
        assert!(
            signal.take_within(if kept { STUCK } else { Duration::ZERO }),
            "block_on would hang: the future is pending and {}",
            if kept {
                "nothing has woken it for 60 s"
            } else {
                "nobody has kept its waker"
            },
        );
    }
}

#[derive(Debug, Default)]
struct Signal {
    woken: Mutex<bool>,
    #[cfg(not(target_arch = "wasm32"))]
    changed: Condvar,
}

impl Signal {
    /// Whether it was woken. There is no other thread to wait for.
    #[cfg(target_arch = "wasm32")]
    fn take_within(&self, _: Duration) -> bool {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *woken)
    }

    /// Waits to be woken; says whether it was.
    #[cfg(not(target_arch = "wasm32"))]
    fn take_within(&self, patience: Duration) -> bool {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut woken, _) = self
            .changed
            .wait_timeout_while(woken, patience, |woken| !*woken)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *woken)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        #[cfg(not(target_arch = "wasm32"))]
        self.changed.notify_one();
    }
}

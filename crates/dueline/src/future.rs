//! The one shape of an asynchronous answer in this crate.
//!
//! Everything that crosses a trait object returns a boxed future, so that stores and handlers are
//! object-safe. Natively the future is `Send`; on `wasm32` a Durable Object is single-threaded and
//! its JavaScript values are not `Send`, so there the bound disappears.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::mutants::{Mutant, planted};
use crate::timers::HandlerError;

/// A boxed future, `Send` except on `wasm32`.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed future, `Send` except on `wasm32`.
#[cfg(target_arch = "wasm32")]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// `Send + Sync` natively, nothing on `wasm32`.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSendSync: Send + Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + Sync + ?Sized> MaybeSendSync for T {}

/// `Send + Sync` natively, nothing on `wasm32`.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSendSync {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSendSync for T {}

/// `Send` natively, nothing on `wasm32`.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + ?Sized> MaybeSend for T {}

/// `Send` natively, nothing on `wasm32`.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSend {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSend for T {}

/// Polls a future that `make` builds and turns a panic of either into a handler's failure.
pub(crate) async fn catch_panic<'a, T, F>(make: F) -> Result<T, HandlerError>
where
    F: FnOnce() -> BoxFuture<'a, Result<T, HandlerError>>,
{
    let mut run = Contained(Some(contain(make)?));
    poll_fn(|context| match &mut run.0 {
        Some(future) => contain(|| future.as_mut().poll(context))
            .unwrap_or_else(|panicked| Poll::Ready(Err(panicked))),
        None => Poll::Pending,
    })
    .await
}

/// What a handler answers at once, or its panic as a failure.
pub(crate) fn contain<T>(ask: impl FnOnce() -> T) -> Result<T, HandlerError> {
    if planted(Mutant::PanicEscapes) {
        return Ok(ask());
    }
    catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| panicked(panic.as_ref()))
}

/// A run whose drop is contained too: at its deadline it is dropped with whatever it holds.
struct Contained<'a, T>(Option<BoxFuture<'a, T>>);

impl<T> Drop for Contained<'_, T> {
    fn drop(&mut self) {
        let run = self.0.take();
        if let Err(panicked) = contain(|| drop(run)) {
            tracing::error!(error = %panicked, "a handler panicked while its run was dropped");
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> HandlerError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    HandlerError::new(format!("the handler panicked: {text}"))
}

/// A future, or a handler's failure if the sleep ends first.
pub(crate) async fn or_deadline<T>(
    future: impl Future<Output = Result<T, HandlerError>>,
    start_sleep: impl Fn() -> BoxFuture<'static, ()>,
    deadline: Duration,
) -> Result<T, HandlerError> {
    let mut future = pin!(future);
    // Most runs are ready at the first poll and never need a timer.
    let mut sleep = None;
    poll_fn(|context| {
        if let Poll::Ready(result) = future.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        if planted(Mutant::DeadlineIgnored) {
            return Poll::Pending;
        }
        sleep
            .get_or_insert_with(&start_sleep)
            .as_mut()
            .poll(context)
            .map(|()| {
                let ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
                Err(HandlerError::new(format!(
                    "the run passed its deadline of {ms} ms"
                )))
            })
    })
    .await
}

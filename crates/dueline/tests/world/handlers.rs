//! Handlers that several tests use.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use dueline::BoxFuture;
use dueline::store::Batch;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use dueline_testkit::{ManualClock, handler};

/// What handlers have seen, in order. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    /// The references of the timers that ran, or whatever was noted.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

pub fn reference_of(timer: &DueTimer) -> String {
    String::from_utf8_lossy(timer.reference()).into_owned()
}

/// Notes the reference and is done.
pub fn notes(seen: &Seen) -> impl TimerHandler + use<> {
    let seen = seen.clone();
    handler(move |_, timer| {
        seen.note(reference_of(timer));
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    })
}

/// Appends the reference to the row `log` of its partition, which it guards.
pub fn appends() -> impl TimerHandler {
    handler(|ctx, timer| {
        Box::pin(async move {
            let log = ctx.get(&"log".into()).await?;
            let mut longer = log.clone().unwrap_or_default().to_vec();
            longer.extend_from_slice(timer.reference());
            longer.push(b' ');
            Ok(Fired::Done(
                Batch::new()
                    .require_unchanged("log", log)
                    .put("log", longer),
            ))
        })
    })
}

/// Fails with this text.
pub fn fails(text: &'static str) -> impl TimerHandler {
    handler(move |_, _| Box::pin(async move { Err(HandlerError::new(text)) }))
}

/// Notes the reference and lets this much time pass on the clock.
pub fn takes_ms(clock: &ManualClock, seen: &Seen, ms: u64) -> impl TimerHandler + use<> {
    let (clock, seen) = (clock.clone(), seen.clone());
    handler(move |_, timer| {
        seen.note(reference_of(timer));
        clock.advance_ms(ms);
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    })
}

/// Never returns.
pub fn hangs() -> impl TimerHandler {
    handler(|_, _| Box::pin(pending()))
}

/// Says the same of every timer.
pub fn says(
    fired: impl Fn(&DueTimer) -> Fired + Send + Sync + 'static,
) -> impl TimerHandler + 'static {
    handler(move |_, timer| {
        let fired = fired(timer);
        Box::pin(async move { Ok(fired) })
    })
}

type CallFn = dyn Fn(&DueTimer) -> BoxFuture<'static, Result<String, HandlerError>> + Send + Sync;
type SettleFn = dyn Fn(&DueTimer, &str) -> Result<Fired, HandlerError> + Send + Sync;

/// A detached handler of two closures; by default a call that notes its reference and a settle that
/// puts the output under the reference.
pub struct Calls {
    call: Box<CallFn>,
    settle: Box<SettleFn>,
}

impl Calls {
    pub fn noting(seen: &Seen) -> Self {
        let seen = seen.clone();
        Self {
            call: Box::new(move |timer| {
                seen.note(reference_of(timer));
                Box::pin(async { Ok("answer".to_owned()) })
            }),
            settle: Box::new(|timer, output| {
                Ok(Fired::Done(
                    Batch::new().put(timer.reference().clone(), output.to_owned()),
                ))
            }),
        }
    }

    #[must_use]
    pub fn call(
        mut self,
        call: impl Fn(&DueTimer) -> BoxFuture<'static, Result<String, HandlerError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.call = Box::new(call);
        self
    }

    #[must_use]
    pub fn settle(
        mut self,
        settle: impl Fn(&DueTimer, &str) -> Result<Fired, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.settle = Box::new(settle);
        self
    }
}

impl DetachedHandler for Calls {
    type Output = String;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<String, HandlerError>> {
        Box::pin(async move {
            ctx.get(timer.reference()).await?;
            (self.call)(timer).await
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a String,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            ctx.get(timer.reference()).await?;
            (self.settle)(timer, output)
        })
    }
}

/// Runs a future to its end and moves the clock to the end of the next sleep whenever it waits.
pub fn complete<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..100_000 {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
        let sleep = clock.next_sleep_end().expect("it waits for a sleep");
        clock.advance(sleep);
    }
    panic!("the future has not ended after 100,000 sleeps");
}

/// Polls a future once.
pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

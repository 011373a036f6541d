//! Handlers that several tests use.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::Runtime;
use dueline::store::Batch;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use dueline_testkit::handler;

/// What handlers have seen, in order. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

pub fn reference_of(timer: &DueTimer) -> String {
    String::from_utf8_lossy(timer.reference()).into_owned()
}

/// Notes the reference and is done.
pub fn notes(seen: &Seen) -> impl TimerHandler + 'static + use<> {
    let seen = seen.clone();
    handler(move |_, timer| {
        seen.note(reference_of(timer));
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    })
}

/// Notes the reference and takes the instance down: it never returns.
pub fn traps(seen: &Seen) -> impl TimerHandler + 'static + use<> {
    let seen = seen.clone();
    handler(move |_, timer| {
        seen.note(reference_of(timer));
        Box::pin(pending())
    })
}

/// Fails.
pub fn fails() -> impl TimerHandler + 'static {
    handler(|_, _| Box::pin(async { Err(HandlerError::new("it fails")) }))
}

/// Calls out for a while.
pub struct CallsFor {
    pub ms: u64,
    pub runtime: Runtime,
    pub seen: Seen,
}

impl DetachedHandler for CallsFor {
    type Output = ();

    fn call<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            self.seen.note(format!("call {}", reference_of(timer)));
            self.runtime.sleep(Duration::from_millis(self.ms)).await;
            self.seen.note(format!("answer {}", reference_of(timer)));
            Ok(())
        })
    }

    fn settle<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            Ok(Fired::Done(
                Batch::new().put(timer.reference().clone(), "settled"),
            ))
        })
    }
}

//! Handlers in JavaScript.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use dueline::BoxFuture;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::errors::text_of;
use crate::outcome::Said;
use crate::outcome::Scheduling;
use crate::platform::Host;

/// The handler of a kind, as the host has it.
#[derive(Clone)]
pub(crate) struct HostHandler {
    host: Host,
    /// Known once the driver, which owns the handlers, has been opened.
    scheduling: Rc<OnceCell<Scheduling>>,
}

thread_local! {
    static LAST_RUN: Cell<f64> = const { Cell::new(0.0) };
}

/// One run of a function of the host's. The host is told when nobody waits for it any more.
pub(crate) struct Run<'h> {
    host: &'h Host,
    pub(crate) number: f64,
    is_over: bool,
}

impl<'h> Run<'h> {
    pub(crate) fn new(host: &'h Host) -> Self {
        let number = LAST_RUN.get() + 1.0;
        LAST_RUN.set(number);
        Self {
            host,
            number,
            is_over: false,
        }
    }

    /// Hands a timer to its handler, or with a call's output to what settles it.
    fn hand_over(&self, timer: &DueTimer, now_ms: u64, output: Option<&JsValue>) -> f64 {
        let (host, kind, run) = (self.host, timer.kind().0, self.number);
        let (reference, payload) = (timer.reference().as_ref(), timer.payload().as_ref());
        let is_named = timer.is_named();
        let (due_at, now) = (timer.due_at_ms() as f64, now_ms as f64);
        let (attempt, generation) = (u32::from(timer.attempt()), timer.generation());
        let error = timer.last_error().map(|failure| failure.error.as_str());
        match output {
            None => host.run(
                kind, run, reference, is_named, payload, due_at, now, attempt, generation, error,
            ),
            Some(output) => host.settle(
                output, kind, run, reference, is_named, payload, due_at, now, attempt, generation,
                error,
            ),
        }
    }

    /// What the host returned, awaited if it is a promise. What it throws is the error of a handler.
    pub(crate) async fn answer(
        &mut self,
        returned: Result<JsValue, JsValue>,
    ) -> Result<JsValue, HandlerError> {
        let answer = match returned {
            Ok(value) if value.is_instance_of::<Promise>() => {
                JsFuture::from(value.unchecked_into::<Promise>()).await
            }
            other => other,
        };
        self.is_over = true;
        answer.map_err(|thrown| HandlerError::new(text_of(&thrown)))
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.host.abandon(self.number);
        }
    }
}

impl HostHandler {
    pub(crate) fn new(host: Host, scheduling: Rc<OnceCell<Scheduling>>) -> Self {
        Self { host, scheduling }
    }

    fn scheduling(&self) -> Result<&Scheduling, HandlerError> {
        self.scheduling
            .get()
            .ok_or_else(|| HandlerError::uncharged("the object is not open yet"))
    }

    async fn run(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        output: Option<&JsValue>,
    ) -> Result<Said, HandlerError> {
        let mut run = Run::new(&self.host);
        let effects = run.hand_over(timer, ctx.now_ms(), output);
        // Most timers are done at once.
        if effects >= 0.0 {
            run.is_over = true;
            return Ok(Said::done(effects));
        }
        let said = self.host.said();
        run.answer(Ok(said)).await.map(Said::from)
    }
}

impl TimerHandler for HostHandler {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let said = self.run(ctx, timer, None).await?;
            self.scheduling()?.fired(ctx, timer, said).await
        })
    }
}

impl DetachedHandler for HostHandler {
    type Output = JsValue;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<JsValue, HandlerError>> {
        Box::pin(async move {
            let outcome = match self.run(ctx, timer, None).await? {
                Said::More(outcome) => outcome,
                Said::Done { .. } => return Err(HandlerError::new("a call brought nothing back")),
            };
            match outcome.said().as_str() {
                "output" => Ok(outcome.output()),
                // Said before the settling could: it stands for the call's failure.
                "undecodable" => Err(HandlerError::undecodable(
                    outcome.reason().unwrap_or_default(),
                )),
                _ => Err(HandlerError::new(outcome.reason().unwrap_or_default())),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a JsValue,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let said = self.run(ctx, timer, Some(output)).await?;
            self.scheduling()?.fired(ctx, timer, said).await
        })
    }
}

//! Handlers in JavaScript.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use dueline::BoxFuture;
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::errors::text_of;
use crate::outcome::Scheduling;
use crate::platform::{Host, Outcome};
use crate::records::due_timer;

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

/// One run of a handler. The host is told when nobody waits for it any more.
struct Run<'h> {
    host: &'h Host,
    number: f64,
    is_over: bool,
}

impl<'h> Run<'h> {
    fn new(host: &'h Host) -> Self {
        let number = LAST_RUN.get() + 1.0;
        LAST_RUN.set(number);
        Self {
            host,
            number,
            is_over: false,
        }
    }

    /// What the host returned, awaited if it is a promise.
    async fn outcome(&mut self, said: Result<JsValue, JsValue>) -> Result<Outcome, HandlerError> {
        let said = match said {
            Ok(said) => match said.dyn_into::<Promise>() {
                Ok(promise) => JsFuture::from(promise).await,
                Err(value) => Ok(value),
            },
            Err(thrown) => Err(thrown),
        };
        self.is_over = true;
        said.map(JsCast::unchecked_into)
            .map_err(|thrown| HandlerError::new(text_of(&thrown)))
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

    async fn run(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Outcome, HandlerError> {
        let mut run = Run::new(&self.host);
        let said = self.host.run(&due_timer(timer, run.number, ctx.now_ms()));
        run.outcome(said).await
    }
}

impl TimerHandler for HostHandler {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let outcome = self.run(ctx, timer).await?;
            self.scheduling()?.fired(timer, &outcome).await
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
            let outcome = self.run(ctx, timer).await?;
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
            let mut run = Run::new(&self.host);
            let view = due_timer(timer, run.number, ctx.now_ms());
            let said = self.host.settle(&view, output);
            let outcome = run.outcome(said).await?;
            self.scheduling()?.fired(timer, &outcome).await
        })
    }
}

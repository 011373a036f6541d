//! What a built-in kind asks the application.

use dueline::store::Batch;
use dueline::timers::HandlerError;
use js_sys::JsString;
use wasm_bindgen::prelude::*;

use crate::handler::Run;
use crate::literals::literal;
use crate::outcome::marked;
use crate::platform::Host;

#[wasm_bindgen]
extern "C" {
    /// Asks a function of the application by its name: its answer, or a promise of it. `verb` is the number
    /// of the verb that needs the answer; none if that is the alarm. `run` is the number under which the host
    /// is told if nobody waits for the answer any more; 0 if nobody ever does.
    #[wasm_bindgen(method, catch)]
    fn ask(
        this: &Host,
        hook: &JsString,
        argument: &JsValue,
        verb: Option<f64>,
        run: f64,
    ) -> Result<JsValue, JsValue>;
}

/// The functions of the application that built-in kinds ask.
#[derive(Clone)]
pub(super) struct Hooks {
    host: Host,
    verb: Option<f64>,
}

impl Hooks {
    /// Asked by the alarm.
    pub(super) fn new(host: Host) -> Self {
        Self { host, verb: None }
    }

    /// Asked by the verb of this number, if it has one: the host forgets with it what it kept for it.
    pub(super) fn of_verb(host: Host, verb: Option<f64>) -> Self {
        Self { host, verb }
    }

    /// What the function says. What it throws is the error of a handler.
    pub(super) async fn ask(
        &self,
        hook: &'static str,
        argument: JsValue,
    ) -> Result<JsValue, HandlerError> {
        let mut run = Run::new(&self.host);
        let asked = self
            .host
            .ask(&literal(hook), &argument, self.verb, run.number);
        run.answer(asked).await
    }

    /// A batch with the effects that the function returned: the host keeps them and answers their number, or
    /// 0 without any.
    pub(super) async fn effects(
        &self,
        hook: &'static str,
        argument: JsValue,
    ) -> Result<Batch, HandlerError> {
        let number = self.ask(hook, argument).await?.as_f64();
        Ok(marked(number.filter(|number| *number > 0.0)))
    }

    /// Tells the function something. Nobody waits for it, and it has no error.
    pub(super) fn tell(&self, hook: &'static str, argument: &JsValue) {
        let _ = self.host.ask(&literal(hook), argument, self.verb, 0.0);
    }
}

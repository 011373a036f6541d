//! What a built-in kind asks the application.

use dueline::timers::HandlerError;
use js_sys::JsString;
use wasm_bindgen::prelude::*;

use crate::handler::Run;
use crate::literals::literal;
use crate::platform::Host;

#[wasm_bindgen]
extern "C" {
    /// Asks a function of the application by its name: its answer, or a promise of it. `run` is the number
    /// under which the host is told if nobody waits for the answer any more.
    #[wasm_bindgen(method, catch)]
    fn ask(this: &Host, hook: &JsString, argument: &JsValue, run: f64) -> Result<JsValue, JsValue>;
}

/// The functions of the application that built-in kinds ask.
#[derive(Clone)]
pub(super) struct Hooks(Host);

impl Hooks {
    pub(super) fn new(host: Host) -> Self {
        Self(host)
    }

    /// What the function says. What it throws is the error of a handler.
    pub(super) async fn ask(
        &self,
        hook: &'static str,
        argument: JsValue,
    ) -> Result<JsValue, HandlerError> {
        let mut run = Run::new(&self.0);
        let asked = self.0.ask(&literal(hook), &argument, run.number);
        run.answer(asked).await
    }
}

//! What a built-in kind asks the application.

use dueline::timers::HandlerError;
use js_sys::{JsString, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::errors::text_of;
use crate::literals::literal;
use crate::platform::Host;

#[wasm_bindgen]
extern "C" {
    /// Asks a function of the application by its name: its answer, or a promise of it.
    #[wasm_bindgen(method, catch)]
    fn ask(this: &Host, hook: &JsString, argument: &JsValue) -> Result<JsValue, JsValue>;
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
        let asked = self.0.ask(&literal(hook), &argument);
        let answer = match asked {
            Ok(answer) if answer.is_instance_of::<Promise>() => {
                JsFuture::from(answer.unchecked_into::<Promise>()).await
            }
            other => other,
        };
        answer.map_err(|thrown| HandlerError::new(text_of(&thrown)))
    }
}

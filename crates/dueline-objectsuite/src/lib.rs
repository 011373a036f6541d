//! The suites of the store contract and of the built-in kinds, to be run in a real Durable Object over its
//! own database. For the tests of the package `@dueline/durable-object` alone.
//!
//! `contractCases` and `kindCases` list what there is, `runCase` runs one in the object whose storage
//! it is given; it should have nothing else in it. Time is the case's: the store goes by a manual clock. The alarm is
//! a number in memory, as no case may wait; whatever else the store does is the platform's.
//!
//! # Failures
//! A case that fails traps. What it said last is in the global `duelineSuitePanic`, and the caller needs a
//! new instance of the module.
#![cfg(target_arch = "wasm32")]
#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    reason = "a case fails by panicking, its setup too; the signatures are those of the suites"
)]
#![allow(
    clippy::arc_with_non_send_sync,
    reason = "the core shares by Arc; this target has one thread"
)]

mod cases;
mod object;

use std::panic::PanicHookInfo;

use dueline_object::SuiteStorage;
use js_sys::{Array, JsString, Reflect};
use wasm_bindgen::prelude::*;

// Its feature is what is needed of it.
use getrandom as _;

/// The names of the cases of the store contract that this store has to keep.
#[wasm_bindgen(js_name = contractCases)]
pub fn contract_cases() -> Array {
    names(cases::CONTRACT.iter().map(|(name, _)| *name))
}

/// The names of the cases of the built-in kinds that can be run without threads and unwinding.
#[wasm_bindgen(js_name = kindCases)]
pub fn kind_cases() -> Array {
    names(cases::KINDS.iter().map(|(name, _)| *name))
}

/// Runs a case over the database of the object with this `ctx.storage`. Whether there is such a case.
#[wasm_bindgen(js_name = runCase)]
pub fn run_case(name: &str, storage: JsValue) -> bool {
    std::panic::set_hook(Box::new(say));
    object::enter(SuiteStorage::new(storage));
    if let Some((_, case)) = cases::CONTRACT.iter().find(|(known, _)| *known == name) {
        case(&object::subject);
        return true;
    }
    if let Some((_, case)) = cases::KINDS.iter().find(|(known, _)| *known == name) {
        case(&object::store);
        return true;
    }
    false
}

fn names(names: impl Iterator<Item = &'static str>) -> Array {
    names.map(JsString::from).collect()
}

fn say(panic: &PanicHookInfo<'_>) {
    let text = JsValue::from_str(&panic.to_string());
    // A global object takes every property.
    let _ = Reflect::set(&js_sys::global(), &"duelineSuitePanic".into(), &text);
}

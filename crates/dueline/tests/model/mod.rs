//! Handlers that do what their payload says, and random histories over an arena.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod history;
pub mod script;

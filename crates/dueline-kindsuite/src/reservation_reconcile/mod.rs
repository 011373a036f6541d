//! Reservations that end once.

mod deadline;
mod retention;
mod setting;
mod verbs;

pub use deadline::*;
pub use retention::*;
pub use verbs::*;

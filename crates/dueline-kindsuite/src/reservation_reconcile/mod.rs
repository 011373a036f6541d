//! Reservations that end once.

mod costs;
mod deadline;
mod histories;
mod retention;
mod setting;
mod verbs;

pub use costs::*;
pub use deadline::*;
pub use histories::{random_histories_end_every_reservation_once, scenario};
pub use retention::*;
pub use verbs::*;

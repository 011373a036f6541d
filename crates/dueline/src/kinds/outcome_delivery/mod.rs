//! A transactional outbox: outcomes are written in the batch that changes the state, and delivered to a
//! sink in their order.

mod builder;
mod rows;

pub use builder::{OutboxBuilder, OutboxName};
pub use rows::{OUTBOX_NAME_BYTES_MAX, OUTCOME_BODY_BYTES_MAX, OUTCOME_ID_BYTES_MAX, Outcome};

use crate::kind::TimerKind;

/// The kind of the timer that delivers the outcomes of one outbox.
pub const OUTCOME_DELIVERY: TimerKind = TimerKind(8);

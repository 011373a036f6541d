//! A transactional outbox: outcomes are written in the batch that changes the state, and delivered to a
//! sink in their order.

mod builder;
mod dead_rows;
mod handler;
mod options;
mod outbox;
mod progress;
mod relay;
mod rows;
mod run;
mod sink;
mod sink_run;
mod walk;

pub use builder::{OutboxBuilder, OutboxName};
pub use dead_rows::DeadOutcomeReason;
pub use handler::OutcomeDelivery;
pub use options::DeliveryOptions;
pub use outbox::{Backlog, DeadOutcome, OUTBOX_PAGE_MAX, Outbox, OutcomePage, WaitingOutcome};
pub use relay::{RELAY_WRITES_MAX, Relay, RelayMessage};
pub use rows::{OUTBOX_NAME_BYTES_MAX, OUTCOME_BODY_BYTES_MAX, OUTCOME_ID_BYTES_MAX, Outcome};
pub use sink::{Delivery, DeliveryMeter, RunSummary, Sink, SinkError};

use crate::kind::TimerKind;

/// The kind of the timer that delivers the outcomes of one outbox.
pub const OUTCOME_DELIVERY: TimerKind = TimerKind(8);
/// How soon an outcome that is appended while its outbox sleeps after a failure is tried, in milliseconds,
/// unless the sink asked for more.
pub const APPEND_WAKE_MS: u64 = 1_000;
/// The longest pause of an outbox after an outcome that failed, in milliseconds: those that were not tried
/// yet may wait behind it. One whose sink is unavailable pauses as long as its policy says.
pub const OUTCOME_BACK_OFF_MS_MAX: u64 = 60_000;
/// Most outcomes that one run takes off an outbox.
pub const ROWS_PER_RUN_MAX: usize = 80;
/// Most outcomes that one run looks at, those included that are left out.
pub const ROWS_LOOKED_AT_MAX: usize = 256;
/// The longest pause that a sink may ask for, in milliseconds: a day.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// From which age on a run warns of outcomes that still wait, by default, in milliseconds.
pub const BACKLOG_LAG_WARN_MS: u64 = 60_000;

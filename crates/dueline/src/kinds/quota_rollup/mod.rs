//! Counters kept per shard, rolled up into a namespace total.

mod admission;
mod amounts;
mod coordinator;
mod handler;
mod job;
mod meter;
mod quota;
mod quotas;
mod rows;
mod window;

pub use admission::{Admission, Basis, Limits};
pub use amounts::{Amounts, COUNTERS_MAX};
pub use handler::QuotaRollup;
pub use meter::{BackOff, QuotaMeter, QuotaNote};
pub use quota::{PERIOD_MS, Quota};
pub use quotas::{QuotaUsage, Quotas};
pub use rows::QUOTA_NAME_BYTES_MAX;
pub use window::{GRACE_MS, WINDOW_MS_MAX, WINDOW_MS_MIN, Window};

use crate::kind::TimerKind;

/// The kind of the timer that rolls a shard's window up.
pub const QUOTA_ROLLUP: TimerKind = TimerKind(5);

//! What the server does, without a word of HTTP: requests decoded from JSON, timers scheduled and
//! read through the engine's verbs, and the answers as they are shown.

mod answer;
mod batch;
mod condition;
mod core;
mod dead;
mod error;
mod field_errors;
mod fields;
mod health;
mod idempotency;
mod json_text;
mod list;
mod merge_patch;
mod names;
mod overview;
mod page;
mod patch;
mod put;
mod remove;
mod shown;
mod target_spec;
mod timer_spec;

pub(crate) use answer::{Answer, Outcome};
pub(crate) use condition::Condition;
pub(crate) use core::Service;
pub(crate) use error::ServiceError;
pub(crate) use field_errors::{FieldError, FieldErrors};
pub(crate) use fields::{Fields, Members};
pub(crate) use health::{DriverCounts, DriverHealth, NotReady};
pub(crate) use idempotency::{EXPIRY_GROUP_MAX, IDEMPOTENCY_EXPIRY, IdempotencyExpiry, Keyed};
pub(crate) use json_text::compact;
pub(crate) use list::ListFilter;
pub(crate) use names::{NameError, PartitionName, TimerId, check_prefix};
pub(crate) use overview::limits;
pub(crate) use page::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PageRequest};
pub(crate) use shown::TimerJson;
pub(crate) use timer_spec::{TimerSpec, require_due, timer_spec};

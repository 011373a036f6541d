//! HTTP alone: paths, headers and bodies in, statuses, headers and problems out.

mod body;
mod conditions;
mod dead_letters;
#[cfg(test)]
mod ended_claims;
mod health;
mod local_only;
mod names;
mod overview;
mod problem;
mod problem_of;
mod query;
mod reply;
mod router;
#[cfg(test)]
mod store_faults;
mod timers;
mod timers_collection;

pub(crate) use router::router;

/// Most bytes of a body.
pub(crate) const BODY_BYTES_MAX: usize = 1_024 * 1_024;
/// Most bytes of the body of a batch.
pub(crate) const BATCH_BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;

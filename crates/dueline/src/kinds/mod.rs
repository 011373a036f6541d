//! The built-in kinds: time-outs that every backend writes by hand, as finished state machines.
//!
//! Each kind is a folder with planners, a handler and its rows. A planner reads what is there and
//! returns a [`Planned`]: a batch that may be appended to the caller's own, and what it comes to once it
//! is committed. The handler is registered under the kind's number.
//!
//! | kind | number | for |
//! |---|---|---|
//! | [`lease_sweep`] | 1 | leases with a fencing epoch: swept once they have expired and their holder's work has drained |
//! | [`ticket_expiry`] | 2 | holds on a resource with an idempotency key and counted limits, that end once |
//! | [`quota_rollup`] | 5 | counters kept per shard, rolled up into a namespace total |
//! | [`outcome_delivery`] | 8 | a transactional outbox: outcomes written with the state, delivered in order; or relayed to other partitions, exactly once |
//! | [`reservation_reconcile`] | 9 | what is reserved ends once: committed, aborted, or abandoned at its deadline |
//! | [`publication_recheck`] | 12 | a record released only when all its dependencies are visible |
//!
//! Under the feature `test-faults` there is `test_kind` (255) too: timers that fail on demand.
//!
//! # What they share
//! * **One key space.** Rows are of class `b`: `62 00`, the kind's number, a letter for the table, and the
//!   fields; `FORMAT.md` has every row with golden bytes. No application key looks like that, so a kind
//!   may be used in any partition, beside anything.
//! * **Everything that was read is guarded.** A batch that loses a guard wrote nothing: plan again.
//! * **The owner stamp.** A row that waits for a timer stores that timer's due. A timer with another due
//!   is stale (the row was renewed, or somebody else made the timer) and drains without effect, so nothing
//!   is cancelled. A timer that is requeued by hand keeps the due it was made with, and so its row.
//! * **One plan for a row.** Plans may share a batch unless they write the same row: two tickets of one
//!   actor, two ends that are told to one outbox. Their guards would agree and the later write undo the
//!   earlier, so every store refuses such a batch as `Invalid`. Commit one, then plan the other.
//! * **Too early is no error.** If the row says "later", the timer is rescheduled to that time.
//! * **Remote first, local second.** A step in another partition is committed there first and remembers
//!   what it absorbed, so that a run after a crash adds nothing.
//! * **Versions.** Rows and payloads begin with a version byte. A row of an unknown version is `Corrupt`
//!   and stays as it is.
#![warn(missing_docs)]

#[doc(hidden)]
pub mod fuzzing;
pub mod lease_sweep;
mod observed;
pub mod outcome_delivery;
mod owner;
mod planned;
pub mod publication_recheck;
pub mod quota_rollup;
pub mod reservation_reconcile;
mod row;
#[cfg(feature = "test-faults")]
pub mod test_kind;
pub mod ticket_expiry;

pub use planned::Planned;

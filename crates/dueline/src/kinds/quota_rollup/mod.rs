//! Quotas: counters charged on many partitions, rolled up into one total.
//!
//! For whoever limits what a tenant uses (requests, bytes, jobs) while the tenant's data lies in many
//! partitions, and one counter would be a bottleneck. Each partition, a *shard*, counts for itself; once
//! a period a timer carries what it counted to the *coordinator*, a partition too, and brings the total
//! back. A charge is part of the batch that does the work: no charge without the work, no work without the
//! charge.
//!
//! # States
//! ```text
//!   shard, one window                                     coordinator
//!
//!   first charge --> rolling --------- absorb ----------> contribution + total
//!                    |    ^                                   |
//!                    |    +--- view of the total <------------+
//!     30 s behind    |
//!     its end        v
//!                  closing ---------- close ------------> contribution gone; the last takes the total
//!                    |
//!                    v
//!                  rows and timer gone
//! ```
//! * **Absorbed, not added.** The coordinator keeps what it has absorbed of each shard. A roll-up that runs
//!   again, after a crash or an unknown outcome, changes nothing.
//! * **Hot writers lose nothing.** A roll-up guards only that the shard's counter is there. A charge never
//!   makes it start over, and it never makes a charge lose.
//! * **Admission.** A shard decides by its view: the total as it was pushed last, and what was charged here
//!   since. A view is at most a period old when all is well, and lacks what the others charged in the period
//!   before it was taken: **a total exceeds its limit at most by what the other shards admit in three
//!   periods**, as long as they roll up on time; one that does not goes by its last view for two periods.
//!   With a view that is missing or older than two periods a shard admits under [`Limits::local`] alone, so
//!   that the total is bounded by the local limits of all shards. The coordinator lacks what the
//!   shards charged since they rolled up last.
//! * **A counter that decreases** (a shard restored from a backup) is taken as it is, and metered.
//! * **In doubt.** A step at the coordinator commits within seconds of its planning by the coordinator's
//!   clock or not at all. Rows go a minute after the last absorption: what was in doubt cannot bring them
//!   back.
//! * **Closing.** First the coordinator's rows, then the shard's. What windows without a timer left (it was
//!   purged by hand) goes with the end of one that begins more than ten minutes later, at most eight rows
//!   of a table in a batch.
//!
//! [`Quotas`] has a compiled example; `docs/kinds/quota_rollup.md` one with a driver.
//!
//! # Rows
//! `u`: what was charged on a shard. `v`: its view of the total. At the coordinator `c`: what was absorbed of
//! a shard, and `t`: the total. All are keyed by quota and window. See `FORMAT.md`.
//!
//! # Costs
//! Counted by the suite, the engine's claim of a detached call included.
//!
//! | what | reads | commits | rows put, deleted |
//! |---|---|---|---|
//! | a charge, within limits or not | 1 | 1, the caller's | 1, 0; the first of a window 2, 0 |
//! | an admission, a usage, a refusal, a total | 1 | 0 | 0, 0 |
//! | a roll-up | 2 | 3: claim, coordinator, shard | 5, 2 |
//! | a roll-up with nothing new | 2 | 2 | 3, 2 |
//! | the last roll-up of a window, with nothing new | 2 | 2 | 2, 2 |
//! | the end of a shard's window | 3, and 2 for older windows | 3 | 2, 5; of the last shard 1, 6 |
//! | the end of the coordinator's | 1, and 1 for older windows | 2 | 2, 2 |
//! | the same under [`OwnCharges`] | 1, and 1 for older windows | 1 | 0, 2 |
//!
//! # Limits
//! Four counters of 64 bits; a charge that would overflow one is refused. A window lasts 1 s to 400 days, a
//! name has 1 to 64 bytes. The roll-ups of all shards and the charges of the coordinator itself guard one
//! row, the total: a coordinator that is charged many times a second keeps its shards from rolling up. Time is the stores': a
//! charge commits until 5 s behind its window's end, rows go from 30 s behind it on. A store whose clock is
//! set back just while a window is closed may count a charge of that moment twice in it; with a crash on
//! top, not at all.
//! After an `Unknown` a charge has happened or not: to charge once only, plan it into a batch that writes
//! a row of your own, guarded by its absence.

mod admission;
mod amounts;
mod coordinator;
mod handler;
mod job;
mod meter;
mod own_charges;
mod quota;
mod quotas;
mod rows;
mod window;

pub use admission::{Admission, Basis, Limits};
pub use amounts::{Amounts, COUNTERS_MAX};
pub use handler::QuotaRollup;
pub use meter::{BackOff, QuotaMeter, QuotaNote};
pub use own_charges::OwnCharges;
pub use quota::{PERIOD_MS, Quota};
pub use quotas::{QuotaUsage, Quotas};
pub(super) use rows::FORMS;
pub use rows::QUOTA_NAME_BYTES_MAX;
pub use window::{GRACE_MS, WINDOW_MS_MAX, WINDOW_MS_MIN, Window};

use crate::kind::TimerKind;

/// The kind of the timer that rolls a shard's window up.
pub const QUOTA_ROLLUP: TimerKind = TimerKind(5);

//! Dueline on a Durable Object: the driver that turns stored wakes into the object's one alarm.
//!
//! For whoever runs timers inside an object, in Rust or behind a thin class in another language. The
//! crate is the whole logic and none of the platform: it is given an [`ObjectStorage`] (a synchronous
//! SQL database and the alarm), a [`Runtime`](dueline::runtime::Runtime) and a registry of handlers,
//! and is driven by three entries. It builds for `wasm32-unknown-unknown` and for the machine that
//! tests it.
//!
//! | when the platform | call |
//! |---|---|
//! | makes an instance | [`ObjectDriver::open`], then [`restore`](ObjectDriver::restore), with nothing else let in |
//! | brings a request | [`restore`](ObjectDriver::restore), then [`timers`](ObjectDriver::timers) or [`store`](ObjectDriver::store) |
//! | brings the alarm | [`on_alarm`](ObjectDriver::on_alarm); an error is thrown, nothing else is |
//!
//! # Example
//! An object in memory in place of a platform's (`simulated`): a timer is scheduled, the alarm comes.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::store::{Batch, Partition};
//! use dueline::timers::{Fired, Policy, Registration, Registry, Timer, TimerKind};
//! use dueline_testkit::{ManualClock, block_on, handler, test_runtime};
//! use dueline_worker::simulated::{AlarmEnd, Delivery, SimulatedObject};
//! use dueline_worker::{ObjectDriver, ObjectOptions, Start};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! const EXPIRE: TimerKind = TimerKind(16);
//! let expire = handler(|_, timer| {
//!     let order = timer.reference().clone();
//!     Box::pin(async move { Ok(Fired::Done(Batch::new().put(order, "expired"))) })
//! });
//!
//! let clock = ManualClock::new(1_000);
//! let mut object = SimulatedObject::new(Arc::new(clock.clone()))?;
//! let registry = Registry::new().with(EXPIRE, Registration::inline(expire))?;
//! let storage = Arc::new(object.storage().clone());
//! let options = ObjectOptions::default();
//! let driver =
//!     ObjectDriver::open(storage, test_runtime(&clock), registry, Start::Fresh, options)?;
//! block_on(driver.restore())?;
//!
//! let tenant = Partition::new("tenant-7")?;
//! let timer = Timer::new(EXPIRE, "order-42").due_at(61_000).named();
//! block_on(driver.timers().schedule(&tenant, timer, Policy::Replace))?;
//! object.end_turn()?;
//! assert_eq!(object.next_alarm_ms(), Some(61_000));
//!
//! clock.advance_ms(60_000);
//! let Delivery::Run(info) = object.deliver(61_000) else { panic!("the alarm is due") };
//! let report = block_on(driver.on_alarm(info))?;
//! object.alarm_ended(AlarmEnd::Well, 61_000)?;
//! assert_eq!((report.total.fired, object.next_alarm_ms()), (1, None));
//! # Ok(())
//! # }
//! ```
//!
//! # The rules of the alarm
//! Each is held by tests, and a planted bug that breaks it is caught by random histories of an object
//! (`tests/teeth.rs`).
//!
//! 1. **Earlier: before the commit.** A batch that makes something due before the alarm sets the alarm
//!    first, and commits in the same turn. If the alarm is refused, nothing is written.
//! 2. **Later: after the commit.** When the handler of the alarm ends, the earliest head of all lanes is
//!    read in the turn in which the alarm is set for it. Nothing can be scheduled in between.
//! 3. **In the future.** At the next millisecond at the earliest, and never at the time that is being
//!    served: the platform may take that alarm for the one whose handler ends.
//! 4. **Errors of timers stay inside.** Only heads that cannot be read and an alarm that cannot be set are
//!    thrown, so the platform's few retries are spent on them alone: behind the wait for one, the alarms
//!    that are set meanwhile wait too.
//! 5. **Whoever enters looks.** Constructor and requests set an alarm that is missing, too late, or over
//!    for a second without having been served. A platform gives an alarm up after some tries.
//! 6. **One budget.** A tick over all partitions of the object shares one
//!    [`TickBudget`](dueline::timers::TickBudget), and takes them in the order of their wakes. What it
//!    leaves has the next tick, a millisecond later and behind what waited: up to
//!    [`drain_ticks_max`](ObjectOptions::drain_ticks_max) in the same alarm, while that has taken less than the
//!    longest time of a tick, then in the next.
//! 7. **Careful behind a crash.** If the alarm is a retry, the instance follows one that trapped, or the
//!    last alarm was cut after another had been set in its place (that leaves a mark in the database, also
//!    where a constructor sets it that was called for the alarm that it misses), each due timer is
//!    claimed and counted durably before it runs. A handler that takes its instance down so ends in the
//!    dead class.
//! 8. **Within an hour for kinds without a handler.** While the first wake of all is of a kind that this
//!    deployment lacks, the alarm is set at the latest for that wake or an hour from now, whichever is
//!    later. It comes, finds nothing, and sets the next one; so the deployment that has the handler again
//!    finds its timers by itself. Nothing of such a kind is run, written or counted meanwhile.
//!
//! # Calls
//! A detached handler's timer is claimed in a tick; its call runs within the alarm that claimed it, up
//! to [`calls_max`](ObjectOptions::calls_max) at a time, each until its deadline, and is settled there.
//! While calls are under way the alarm goes on with what comes due, so a slow receiver delays nothing,
//! for [`stay_ms`](ObjectOptions::stay_ms); then the calls end, beside them only such as end no later,
//! and the next alarm takes over. Keep
//! deadlines well below the time the platform gives an alarm. An object that is evicted in a call finds
//! the timer again when its claim ends: at its deadline and 10 s. Requests that a call sends out leave
//! through the platform's output gate, so not before the claim is durable.
//!
//! # What it costs
//! Statements, and rows that SQLite returned and changed, as `tests/costs.rs` counts them with a timer pending
//! far away; an object's bill counts about these. A turn is one durable commit.
//!
//! | | statements | rows read | rows written | writes of the alarm | turns |
//! |---|---|---|---|---|---|
//! | schedule, due before everything else | 4 | 1 | 2 | 1 | 1 |
//! | schedule, due later | 1 | 0 | 1 | 0 | 1 |
//! | the same with a name | 2 | 0 | 2 | 0 | 1 |
//! | 100 in one commit ([`ObjectDriver::schedule_all`]), due before everything else | 103 | 1 | 101 | 1 | 1 |
//! | the same, due later | 100 | 0 | 100 | 0 | 1 |
//! | the same with names that are new | 301 | 1 | 200 | 0 | 1 |
//! | the same with names that are known | 501 | 201 | 300 | 0 | 1 |
//! | a batch without a timer | 2 | 1 | 1 | 0 | 1 |
//! | an alarm that fires one timer | 10 | 5 | 2 | 1 | 1 |
//! | an alarm that fires 32 in one group | 41 | 36 | 33 | 1 | 1 |
//! | an alarm whose timer fails and waits for its retry | 18 | 9 | 5 | 2 | 1 |
//! | an alarm with one call | 26 | 13 | 8 | 2 | 2 |
//! | an alarm that finds nothing (a cancel leaves one) | 9 | 4 | 1 | 1 | 1 |
//! | the hourly alarm for a kind without a handler | 6 | 5 | 0 | 1 | 1 |
//! | the entry of a request | 0 | 0 | 0 | 0, one read | 0 |
//! | a new instance | 6 | 5 | 0 | 0, one read | 0 |
//! | a new instance, made by its alarm | 7 | 5 | 1 | 1, one read | 1 |
//!
//! # Limits
//! * Everything that writes timers writes through this driver: what is put past it has no alarm.
//! * A timer is late by what the platform's alarm is late, and by a millisecond or two if it was due
//!   already; by more if the platform does not say what it serves ([`AlarmInfo::scheduled_at_ms`]).
//! * One tick fires at most 128 timers, 32 of a kind, unless [`ObjectOptions::budget`] says otherwise; an alarm
//!   without calls has at most 16 ticks, one with calls 64.
//! * A timer of a kind without a handler here costs an alarm an hour from its due on (rule 8), and a put of
//!   one costs a look at its due. Once its handler is deployed it is up to an hour late, unless a request or
//!   another timer wakes the object.
//! * A handler that takes down the whole process, not just its instance, is known only if the platform
//!   calls the next try of the alarm a retry, or the alarm had set another.
//!
//! # Features
//! `simulated`: an object in memory with its scheduler, its crashes and its faults, for tests.
#![forbid(unsafe_code)]
#![cfg_attr(
    target_arch = "wasm32",
    allow(
        clippy::arc_with_non_send_sync,
        reason = "one Arc serves every target; this one has one thread, and its futures are not Send"
    )
)]

mod alarm;
mod driver;
mod error;
mod hold;
mod mutants;
mod report;
#[cfg(feature = "simulated")]
pub mod simulated;
mod storage;
mod store;
mod yielding;

pub use driver::{ObjectDriver, ObjectOptions, Start};
pub use error::AlarmError;
pub use report::{AlarmInfo, AlarmReport, Restored};
pub use storage::{AlarmWrite, ObjectStorage, SqlTask};
pub use store::{ObjectStore, effect_mark};

//! Durable timers that live beside the state they act on.
//!
//! A timer is a row in the same partition as the state it concerns. Creating it is one more write
//! in the batch that creates the state; when it is due, the handler's effects and the removal of
//! the timer commit in one atomic batch. So effects are exactly once without idempotency code,
//! nothing is ever "stuck running", and there is no queue to babysit.
//!
//! This crate is the core: the store contract, the rows, the engine, a store in memory and the SQL
//! that SQLite and Durable Objects share. It names no runtime and no database, reads no clock of
//! its own, and builds for `wasm32-unknown-unknown`. `dueline-sqlite` stores timers in a file,
//! `dueline-tokio` decides which partition ticks when, `dueline-worker` does so on a Durable Object's
//! alarm, `dueline-server` speaks HTTP.
//!
//! # Example
//!
//! A seat is held for ten minutes. Hold and timer are one batch; so are expiry and the timer's end.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::BoxFuture;
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, NamespaceStore, Partition, ReadStore};
//! use dueline::timers::{
//!     DueTimer, Engine, Fired, HandlerError, Policy, Registration, Registry, TickBudget, Timer,
//!     TimerCtx, TimerHandler, TimerKind, run_due,
//! };
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! const HOLD_EXPIRY: TimerKind = TimerKind(16);
//!
//! struct ExpireHold;
//!
//! impl TimerHandler for ExpireHold {
//!     fn fire<'a>(
//!         &'a self,
//!         ctx: &'a TimerCtx<'a>,
//!         timer: &'a DueTimer,
//!     ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
//!         Box::pin(async move {
//!             let seat = timer.reference();
//!             let effects = match ctx.get(seat).await? {
//!                 Some(hold) => Batch::new().require_equals(seat.clone(), hold).delete(seat.clone()),
//!                 None => Batch::new(),
//!             };
//!             Ok(Fired::Done(effects))
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! let registry = Registry::new().with(HOLD_EXPIRY, Registration::inline(ExpireHold))?;
//! let engine = Engine::new(store.clone(), test_runtime(&clock), registry);
//! let show = Partition::new("show-7")?;
//!
//! block_on(async {
//!     let timer = Timer::new(HOLD_EXPIRY, "seat-12A").due_at(601_000).named();
//!     let plan = engine.timers().plan(&show, &timer, Policy::Replace).await?;
//!     let hold = Batch::new().require_absent("seat-12A").put("seat-12A", "held by 42");
//!     store.apply(&show, hold.append(plan.batch)).await?;
//!
//!     clock.advance_ms(600_000);
//!     let tick = run_due(&engine, &show, TickBudget::default()).await;
//!     assert_eq!(tick.report.total.fired, 1);
//!     assert_eq!(store.get(&show, &"seat-12A".into()).await?, None);
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | partition | the unit of atomicity and placement, a byte string: one tenant, one order ([`store::Partition`]) |
//! | row | a key and a value inside a partition; keys order by raw bytes |
//! | batch | the only write: preconditions checked in order, then puts and deletes, atomically ([`store::Batch`]) |
//! | timer | a row: kind, due, generation, reference, header, payload ([`timers::Timer`]) |
//! | kind | which handler decodes and fires the timer ([`timers::TimerKind`]) |
//! | reference | the caller's identity of a timer, 0 to 512 bytes |
//! | named timer | one whose (kind, reference) is unique in its partition: read, replaced and cancelled by name |
//! | generation | a number drawn at every scheduling; tells one scheduling from the next, opaque to users |
//! | occurrence id | (partition, kind, reference, generation): the same for every retry and after a requeue |
//! | lane | all timers of one kind in one partition, in due order |
//! | tick | one bounded run over the due timers of a partition ([`timers::Engine::tick`]) |
//! | wake | a stored time at which a lane wants to be looked at; kept by the store ([`store::WakeStore`]) |
//! | driver | what decides which partition ticks when: `dueline-tokio`, or `dueline-worker` on a Durable Object's alarm |
//!
//! # Guarantees
//!
//! 1. A committed timer is never lost: it fires, or it is visible as pending, claimed, dead or
//!    quarantined.
//! 2. It never takes effect before its due by the store's clock.
//! 3. Effects *returned in the batch* happen exactly once per generation. Whatever a handler does
//!    in another way (a call, another store handle) happens at least once, with a stable
//!    occurrence id.
//! 4. A cancel or replace that has been acknowledged is final in the partition. A call already
//!    under way may still arrive.
//! 5. A lane that is not paused has a wake at or before its first row, at every durable point.
//! 6. A tick starts nothing beyond its budget, and no lane or partition starves another.
//! 7. Rows of a kind this binary does not know are never written. Rows it cannot decode are set
//!    aside once, byte for byte.
//!
//! Not promised: exactly once outside the partition; order between partitions; one run at a time of
//! two generations of one name; correctness on a disk that lies about fsync.
//!
//! # Limits
//!
//! Partition 256 bytes, key 1,024 bytes, value 512 KiB, payload 480 KiB, reference 512 bytes; 100
//! preconditions and writes and 1 MiB in a batch, of which a handler may use 92; due at most
//! 9999-12-31T23:59:59.999Z. All of them are constants in [`limits`]; a request over one is refused
//! before anything is read, with the figure.
//!
//! # How to
//!
//! * **Schedule together with your own writes**: [`timers::Timers::plan`], append its batch to
//!   yours, apply once, as above. Alone: [`timers::Timers::schedule`].
//! * **Ask for work that may be asked for already** (a kick): [`timers::Policy::KeepEarliest`]. A
//!   kick always draws a new generation, so a run that had read before it cannot settle over it.
//! * **Cancel, move, look**: `cancel`, `reschedule`, `update`, `get` and `list` of
//!   [`timers::Timers`], with the generation as an optional condition.
//! * **Repeat**: return [`timers::Fired::Reschedule`]; compute the next due from
//!   [`timers::DueTimer::due_at_ms`], not from now, and it will not drift.
//! * **Call out** (HTTP, another partition): a [`timers::DetachedHandler`]; the timer is claimed
//!   durably, the call runs outside the tick, its settling commits under the claim.
//! * **Commit many timers at a time**: [`timers::Registration::group_max`]. The results are those
//!   of one at a time; the commits are fewer.
//! * **Take a kind that is there already** (leases, holds, quotas, an outbox, reservations, a release
//!   gate): [`kinds`].
//! * **Retry your way**: [`timers::RetryPolicy`] per kind or per timer;
//!   [`timers::Fired::Retry`] with a delay for one run. After the last attempt the timer is dead,
//!   with its error: `dead`, `requeue`, `purge`.
//! * **Stop a kind for a while**: [`timers::Engine::pause_and_drain`], [`timers::Timers::resume`].
//! * **Test a handler**: build [`timers::TimerCtx`] and [`timers::DueTimer::for_test`] over a
//!   [`memory::MemoryStore`], call `fire`, look at the batch. `dueline-testkit` has a clock that
//!   stands still and a store that fails on demand.
//! * **Store timers elsewhere**: implement [`store::NamespaceStore`] (and [`store::WakeStore`] for
//!   a native driver) and run the conformance suite of `dueline-testkit` over it.
#![forbid(unsafe_code)]
#![cfg_attr(
    target_arch = "wasm32",
    allow(
        clippy::arc_with_non_send_sync,
        reason = "one Arc serves every target; this one has one thread, and its futures are not Send"
    )
)]

mod future;
mod kind;
pub mod kinds;
pub mod limits;
pub mod memory;
#[cfg(dueline_mutants)]
pub mod mutants;
#[cfg(not(dueline_mutants))]
mod mutants;
pub mod ordered;
pub mod rows;
pub mod runtime;
pub mod sql;
pub mod store;
pub mod timers;

pub use bytes::Bytes;
pub use future::{BoxFuture, MaybeSend, MaybeSendSync};

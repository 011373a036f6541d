//! What a test of Dueline needs: a clock that stands still, a store that fails on demand, and the
//! conformance suite that every store must pass.
//!
//! Nothing here needs a runtime. [`block_on`] runs the futures of a store; an engine in a test is
//! given [`test_runtime`], whose time moves only when the test moves it.
//!
//! # A handler, alone and in the engine
//! A handler plans and commits nothing, so a test calls it and looks at its plan. The engine is then
//! given time by hand: no test waits.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, ReadStore};
//! use dueline::timers::{
//!     DueTimer, Engine, Fired, Policy, Registration, Registry, TickBudget, Timer, TimerCtx,
//!     TimerHandler, TimerKind, run_due,
//! };
//! use dueline_testkit::{ManualClock, block_on, commit, handler, partition, test_runtime};
//!
//! const EXPIRE: TimerKind = TimerKind(16);
//!
//! let expire = handler(|ctx, timer| {
//!     Box::pin(async move {
//!         let order = timer.reference().clone();
//!         let Some(state) = ctx.get(&order).await? else {
//!             return Ok(Fired::Done(Batch::new()));
//!         };
//!         let effects = Batch::new().require_equals(order.clone(), state).put(order, "expired");
//!         Ok(Fired::Done(effects))
//!     })
//! });
//!
//! let clock = ManualClock::new(1_000);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! let tenant = partition("tenant-7");
//! commit(store.as_ref(), &tenant, Batch::new().put("order-42", "open"));
//!
//! // Alone: what does it plan?
//! let ctx = TimerCtx::new(store.as_ref(), &tenant, 1_000);
//! let fired = block_on(expire.fire(&ctx, &DueTimer::for_test(EXPIRE, "order-42", ""))).unwrap();
//! let planned = Batch::new().require_equals("order-42", "open").put("order-42", "expired");
//! assert_eq!(fired, Fired::Done(planned));
//!
//! // In the engine: half a minute later it has happened, and not before.
//! let registry = Registry::new().with(EXPIRE, Registration::inline(expire))?;
//! let engine = Engine::new(store.clone(), test_runtime(&clock), registry);
//! let timer = Timer::new(EXPIRE, "order-42").due_at(31_000).named();
//! block_on(engine.timers().schedule(&tenant, timer, Policy::Replace))?;
//! clock.advance_ms(29_999);
//! let tick = block_on(run_due(&engine, &tenant, TickBudget::default()));
//! assert_eq!(tick.report.total.fired, 0);
//! clock.advance_ms(1);
//! let tick = block_on(run_due(&engine, &tenant, TickBudget::default()));
//! assert_eq!(tick.report.total.fired, 1);
//! assert_eq!(block_on(store.get(&tenant, &"order-42".into()))?, Some("expired".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A store of your own
//! An integration test of it lists the suite; each sentence of the store contract is then a `#[test]`.
//!
//! ```
//! # fn main() {}
//! use std::sync::Arc;
//! use dueline::memory::MemoryStore;
//! use dueline_testkit::conformance::{Setup, Subject};
//!
//! fn fresh(setup: Setup) -> Subject {
//!     Subject::with_wakes(Arc::new(MemoryStore::new(Arc::new(setup.clock.clone()))), setup.clock)
//! }
//!
//! dueline_testkit::conformance_suite!(fresh; wakes);
//! ```
//!
//! [`conformance`] has the features, among them `capacity` and `reopen`.
//!
//! # What is here
//! | for | use |
//! |---|---|
//! | time that stands still | [`ManualClock`], [`test_runtime`] |
//! | a handler in a line | [`handler()`] |
//! | commits and reads that fail, are in doubt, or lose a race | [`FaultStore`] |
//! | what a change costs, counted | [`FaultStore::counts`] |
//! | random histories of engines, clients and crashes, held to rules at every commit | [`model`] |
//! | a store's promises | [`conformance`] |
//!
//! # Limits
//! It is for tests: its functions panic where a test should fail. [`block_on`] parks its thread until
//! the future is woken, so it is not for async code; a sleep of [`test_runtime`] ends only when another
//! thread or task moves the clock.
#![cfg_attr(
    target_arch = "wasm32",
    allow(
        clippy::arc_with_non_send_sync,
        reason = "one Arc serves every target; this one has one thread, and its futures are not Send"
    )
)]

mod block_on;
mod clock;
mod commit;
pub mod conformance;
mod entropy;
mod fault_store;
mod handler;
pub mod model;
mod partition;

pub use block_on::block_on;
pub use clock::ManualClock;
pub use commit::commit;
pub use entropy::SequenceEntropy;
pub use fault_store::{CallCounts, CommitFault, FaultStore, ReadCall};
pub use handler::{FnHandler, handler};
pub use partition::partition;

use std::sync::Arc;

use dueline::runtime::Runtime;

/// A runtime whose clocks and sleeps are this clock's and whose random bits are the same in every
/// run. Two runtimes of one clock draw the same bits; clone one instead where that matters.
pub fn test_runtime(clock: &ManualClock) -> Runtime {
    Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(SequenceEntropy::new(0)),
    )
}

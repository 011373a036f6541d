//! Timers that fail on demand, under the feature `test-faults`: for tests of everything around a handler.
//!
//! For whoever wants to see what their retry policy, their alerts on dead timers, their store and their
//! process do with a handler that errs, panics, hangs or breaks the rules. A timer of this kind carries its
//! faults in its payload, as a [`Script`]: which fault for how many runs; behind them it succeeds. A success
//! adds 1 to a row ([`successes`]), in the batch that removes the timer, so that a test sees that it came
//! about once.
//!
//! | fault | what the engine makes of it | attempt |
//! |---|---|---|
//! | [`Fault::Error`] | back-off, then the next run; after the policy's attempts the dead class | counted |
//! | [`Fault::Uncharged`] | back-off, then the next run | not counted |
//! | [`Fault::Retry`] | the next run after so many milliseconds | counted |
//! | [`Fault::Panic`] | as an error where the target unwinds; on `wasm32` the process traps | counted |
//! | [`Fault::Hang`] | dropped at the deadline, then as an error | counted |
//! | [`Fault::LostGuard`] | planned again at once, three times; then as an error | the fourth is counted |
//! | [`Fault::TooManyOps`], [`Fault::TooManyBytes`], [`Fault::TouchesItself`] | the batch is refused, as an error | counted |
//! | [`Fault::UnknownOutcome`] | the row is read again; as it was: back-off, then the next run | not counted |
//! | [`Fault::Undecodable`] | the dead class at once | not counted |
//! | [`Fault::PastReschedule`] | scheduled again, due in the past: the next run is in the next tick | begins anew |
//! | [`Fault::Dead`] | the dead class at once | counted |
//!
//! The n-th run of a timer meets the n-th fault of its script. Runs are counted by the attempt that is stored
//! with the timer, and where a fault counts none by the [`TestKind`] in memory: a new one begins such faults
//! anew.
//!
//! A handler cannot make the outcome of its commit unknown; a store can. [`TestKind::on_unknown_outcome`] is
//! called when a timer is about to commit that asks for it, and tells the store, such as the `FaultStore` of
//! `dueline-testkit`.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::kinds::test_kind::{Fault, Script, TEST_KIND, TestKind, successes};
//! use dueline::memory::MemoryStore;
//! use dueline::store::Partition;
//! use dueline::timers::{Engine, Registry, RetryPolicy, TickBudget, run_due};
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! // The policy that is to be tested.
//! let policy = RetryPolicy { attempts_max: Some(3), ..RetryPolicy::default() };
//! let registration = TestKind::new().inline().retry(policy);
//! let registry = Registry::new().with(TEST_KIND, registration)?;
//! let engine = Engine::new(store.clone(), test_runtime(&clock), registry);
//! let tenant = Partition::new("tenant-7")?;
//!
//! block_on(async {
//!     let recovers = Script::new().then(Fault::Error, 2).timer("recovers").due_at(1_000);
//!     let never = Script::new().then(Fault::Error, 9).timer("never").due_at(1_000).named();
//!     for timer in [&recovers, &never] {
//!         let plan = engine.timers().plan_new(timer)?;
//!         dueline_testkit::commit(store.as_ref(), &tenant, plan.batch);
//!     }
//!     for _ in 0..3 {
//!         run_due(&engine, &tenant, TickBudget::default()).await;
//!         clock.advance_ms(20_000);
//!     }
//!     assert_eq!(successes(store.as_ref(), &tenant, "recovers").await?, 1);
//!     assert_eq!(successes(store.as_ref(), &tenant, "never").await?, 0);
//!     let dead = engine.timers().dead(&tenant, Some(TEST_KIND), None, 10).await?;
//!     assert_eq!(dead.dead.len(), 1, "out of attempts");
//!     Ok(())
//! })
//! # }
//! ```

mod handler;
mod script;

pub(super) use handler::FORMS;
pub use handler::{TestKind, successes};
pub use script::{Fault, SCRIPT_STEPS_MAX, Script};

use crate::kind::TimerKind;

/// The kind of timers that fail on demand.
pub const TEST_KIND: TimerKind = TimerKind(0xFF);

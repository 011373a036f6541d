//! The native driver of Dueline: it decides which partition ticks when, on threads of its own, and
//! runs the handlers that call out on the async runtime of the program around it.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use dueline::BoxFuture;
//! use dueline::store::{Batch, Partition};
//! use dueline::timers::{
//!     DueTimer, Engine, Fired, HandlerError, Policy, Registration, Registry, Timer, TimerCtx,
//!     TimerHandler, TimerKind,
//! };
//! use dueline_sqlite::{Options, SqliteStore};
//! use dueline_tokio::{Driver, DriverStore, system_runtime};
//!
//! const EXPIRE: TimerKind = TimerKind(16);
//!
//! struct Expire;
//!
//! impl TimerHandler for Expire {
//!     fn fire<'a>(
//!         &'a self,
//!         _: &'a TimerCtx<'a>,
//!         timer: &'a DueTimer,
//!     ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
//!         let gone = Batch::new().delete(timer.reference().clone());
//!         Box::pin(async move { Ok(Fired::Done(gone)) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("timers.db");
//! let runtime = system_runtime()?;
//! let sqlite = SqliteStore::open(path, Options::new(Arc::clone(runtime.clock())))?;
//! let store = DriverStore::new(Arc::new(sqlite));
//! let handlers = Registry::new().with(EXPIRE, Registration::inline(Expire))?;
//! let engine = Engine::new(store.to_store(), runtime, handlers);
//! let driver = Driver::builder(engine, store).start()?;
//!
//! let order = Partition::new("order-42")?;
//! driver.timers().schedule(&order, Timer::new(EXPIRE, "hold"), Policy::Replace).await?;
//! assert!(driver.drain(Duration::from_secs(10)).await.idle);
//! assert_eq!(driver.status().totals.fired, 1);
//! driver.shutdown(Duration::from_secs(10)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Words
//! | word | meaning |
//! |---|---|
//! | turn | one tick of one partition, serving all its wakes that are due; never two at a time |
//! | window | the near wakes read into memory: the only part of what is pending that lies there |
//! | look | a time at which a commit of this program has made a lane wake |
//! | held back | a partition whose tick the store refused: it waits 1 s, doubling to 60 s, or to 5 s while the store is full |
//!
//! # What runs where
//! * One thread decides: it reads wakes, hands out turns and sleeps exactly until the next. On a
//!   store of its own it asks nothing while nothing is due; on a shared one it asks every second.
//! * [`tick_threads`](DriverBuilder::tick_threads) run ticks, settles and the audit. They may block
//!   in the store and in nothing else: a handler that blocks its thread holds up the other ticks of
//!   that thread, and is reported. Each polls many ticks, so that their commits become one.
//! * One thread ([`PreciseSleep`]) ends sleeps, as exactly as the system wakes a thread.
//! * Detached calls are tasks of the async runtime, dropped at their deadline. Nothing on a thread of
//!   that runtime blocks.
//!
//! # What it promises
//! * **Whoever puts a timer wakes it**, as long as the put goes through its [`DriverStore`] (or what
//!   [`Handle::timers`] and [`Handle::store`] give): also when the caller is cancelled half-way.
//! * **Fair.** A partition that is due again at once goes behind all that are due. A kind whose calls
//!   have taken all their slots costs nothing and keeps nobody waiting.
//! * **Bounded.** Memory does not grow with pending timers, overdue ones or partitions: see
//!   [`window_max`](DriverBuilder::window_max).
//! * **The clock may jump.** The wall clock is read again at least every second; a jump is logged and
//!   counted, what is due by the new time fires, and nothing fires early.
//! * **It ends cleanly.** [`Handle::shutdown`] finishes what it can and gives the rest back; a dropped
//!   handle or a killed process loses nothing either.
//!
//! # Limits
//! * A handler must not hold a [`Handle`] of the driver that runs it: the driver owns its handlers, so
//!   the last handle would never be dropped and the driver never stop by itself. A
//!   [`Timers`](dueline::timers::Timers), for other partitions, may be held.
//! * A put that goes around the [`DriverStore`] (through the store inside) wakes nobody. Its timer fires,
//!   but not before the driver next reads wakes.
//! * The async runtime has to outlive the driver: detached calls are its tasks.
//!
//! # How to
//! * embed it in a web service: the example `embed`, in `crates/dueline-tokio/examples/embed.rs` of the
//!   repository; `cargo run -p dueline-tokio --example embed` runs it;
//! * see what it does: [`Handle::status`], and `tracing` events;
//! * run everything due and stop: [`Handle::drain`], then [`Handle::shutdown`];
//! * test a handler in time that stands still: the manual clock of `dueline-testkit` makes a runtime
//!   as good as [`system_runtime`]'s.

mod builder;
mod busy;
mod error;
mod handle;
mod host;
mod looks;
mod mutants;
mod plan;
mod scheduler;
mod shared;
mod shutdown;
mod signal;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;
mod status;
mod store;
mod task_host;
mod wall;
mod work;

pub use builder::{Driver, DriverBuilder};
pub use error::StartError;
pub use handle::Handle;
pub use host::{OsEntropy, PreciseSleep, SystemClock, system_runtime};
pub use status::{DrainReport, ShutdownReport, Status};
pub use store::DriverStore;

/// The program on the front page of the repository must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

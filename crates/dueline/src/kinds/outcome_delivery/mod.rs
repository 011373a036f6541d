//! A transactional outbox: outcomes are written in the batch that changes the state, and delivered to a
//! sink in their order.
//!
//! For whoever tells others what has happened: webhooks, queues, mail, other partitions. The message is
//! one more write of the batch that changes the state, so it is sent if, and only if, the change has
//! committed. What goes out arrives at least once, in order, with an id by which a receiver tells a
//! repetition; what a [`Relay`] applies to other partitions takes effect exactly once.
//!
//! ```text
//!             append                    delivered, or not wanted
//!   (none) ------------> waiting ----------------------------------> gone
//!                         |  ^  \
//!   failed: its back-off, |  |   \  refused, attempts exhausted,
//!   the others go on      +--+    \ undecodable, or by hand
//!                                  +--> set aside --- purge -------> gone
//!                         waiting <--------'
//!                  requeue: a new sequence, behind all others
//! ```
//!
//! * **Appending** ([`OutboxBuilder`], [`Outbox::plan`]) is guarded by the outbox, schedules its one timer
//!   if there is none, and wakes one that sleeps after a failure within a second.
//! * **Delivering** ([`OutcomeDelivery`] with a [`Sink`]) goes outcome by outcome outside the tick. The
//!   first failure ends the run. The next one goes on behind the outcome that failed, so that it starves
//!   nobody, and comes back to it when its own back-off is over. A run is cut at its budget and goes on at
//!   once.
//! * **A sink that takes nothing** ([`SinkError::unavailable`]) keeps the order: no attempt is counted, and
//!   the outbox waits, as long as the sink asked ([`SinkError::retry_after_ms`]) or longer each time.
//! * **Acknowledging** takes what was delivered out in one commit. The outbox is given up only under the
//!   guard that nothing was appended meanwhile; if it was, the commit is planned again, never the call.
//! * **Setting aside**: an outcome is dead after the attempts of its policy, when it is refused, or when
//!   its row does not decode. One whose delivery ends the process has failed after a few such runs.
//!   [`Outbox::dead`], [`Outbox::requeue`], [`Outbox::purge`].
//!
//! # Relay
//! The outcomes of an outbox that has a [`Relay`] are [`RelayMessage`]s: a target and writes. With the writes
//! the target stores how far it has absorbed this outbox, so a repetition adds nothing. Messages for one
//! target are applied in order, many in one batch. A target that fails keeps its own messages back, and up
//! to 32 such targets keep nobody else's: each pass over the outbox leaves them out from their failure on,
//! and the next tries them again. One more ends the pass. Nothing passes a message that does not decode: its
//! target waits, or all do if not even the target can be read, until it is mended or [`Outbox::set_aside`].
//! That is for a message that its target has not absorbed: one that it has is applied a second time if it
//! is requeued.
//!
//! # Costs
//! Counted by the cases `stated_cost` of the suite, on memory and SQLite, at the default 64 outcomes a run.
//! Reads are calls of the store; the tick's own are included, wakes are not.
//!
//! | what | reads | transactions | puts | deletes |
//! |---|---|---|---|---|
//! | append an outcome to a batch of the caller's | 1 | the caller's | 2 | 0 |
//! | append 50 | 1 | the caller's | 51 | 0 |
//! | the first one in an empty outbox, on top | 0 | 0 | 1 | 0 |
//! | deliver the only outcome | 5 | 2 | 3 | 3 |
//! | deliver 10,000 outcomes | 1,409 | 314 | 471 | 10,314 |
//! | relay 10,000 messages to one target | 1,567 | 471 | 10,628 | 10,314 |
//! | relay 10,000 messages to ten targets | 2,980 | 1,884 | 12,041 | 10,314 |
//! | relay 1,600 messages to 1,600 targets | 2,200 | 1,800 | 3,500 | 1,800 |
//!
//! So an outcome of a backlog costs 0.14 reads, 0.03 transactions and 1.08 writes to deliver.
//!
//! # Limits
//! Name of an outbox 64 bytes, id 128 bytes, body 256 KiB; 96 outcomes in a batch without more; 80 outcomes
//! and 256 rows looked at in a run. A message of a relay has 90 writes at most. The two rows of an outbox and
//! the watermarks in its targets stay for ever: without them a sequence would be given twice, and a message
//! taken for absorbed.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use dueline::BoxFuture;
//! use dueline::kinds::outcome_delivery::{
//!     Delivery, OUTCOME_DELIVERY, Outbox, OutboxName, Outcome, OutcomeDelivery, Sink, SinkError,
//! };
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, NamespaceStore, Partition};
//! use dueline::timers::{Engine, Registry, TickBudget, run_due};
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! struct Mail;
//!
//! impl Sink for Mail {
//!     fn deliver<'a>(&'a self, mail: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
//!         Box::pin(async move {
//!             assert_eq!((mail.sequence, &*mail.id), (1, &b"order-42"[..]));
//!             Ok(())
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let runtime = test_runtime(&clock);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock)));
//! let delivery = OutcomeDelivery::new(runtime.clone()).otherwise(Mail);
//! let registry = Registry::new().with(OUTCOME_DELIVERY, delivery.registration())?;
//! let engine = Engine::new(store.clone(), runtime, registry);
//! let shop = Partition::new("shop-7")?;
//! let outbox = Outbox::new(engine.timers().clone(), shop.clone(), OutboxName::new("mail")?);
//!
//! block_on(async {
//!     // The order and what is to be told of it are one commit.
//!     let outcome = Outcome { id: "order-42".into(), body: "paid".into() };
//!     let told = outbox.plan(&[outcome]).await?;
//!     let paid = Batch::new().require_absent("order-42").put("order-42", "paid");
//!     store.apply(&shop, paid.append(told.batch)).await?;
//!
//!     let mut tick = run_due(&engine, &shop, TickBudget::default()).await;
//!     engine.settle(tick.calls.remove(0).run().await).await;
//!     assert_eq!(outbox.backlog().await?.rows, 0);
//!     Ok(())
//! })
//! # }
//! ```

mod builder;
mod dead_rows;
mod handler;
mod options;
mod outbox;
mod progress;
mod relay;
mod rows;
mod run;
mod sink;
mod sink_run;
mod walk;

pub use builder::{OutboxBuilder, OutboxName};
pub use dead_rows::DeadOutcomeReason;
pub use handler::OutcomeDelivery;
pub use options::DeliveryOptions;
pub use outbox::{Backlog, DeadOutcome, OUTBOX_PAGE_MAX, Outbox, OutcomePage, WaitingOutcome};
pub use relay::{RELAY_WRITES_MAX, Relay, RelayMessage};
pub(super) use rows::FORMS;
pub use rows::{OUTBOX_NAME_BYTES_MAX, OUTCOME_BODY_BYTES_MAX, OUTCOME_ID_BYTES_MAX, Outcome};
pub use sink::{Delivery, DeliveryMeter, RunSummary, Sink, SinkError};

use crate::kind::TimerKind;

/// The kind of the timer that delivers the outcomes of one outbox.
pub const OUTCOME_DELIVERY: TimerKind = TimerKind(8);
/// How soon an outcome that is appended while its outbox sleeps after a failure is tried, in milliseconds,
/// unless the sink asked for more.
pub const APPEND_WAKE_MS: u64 = 1_000;
/// The longest pause of an outbox after an outcome that failed, in milliseconds: those that were not tried
/// yet may wait behind it. One whose sink is unavailable pauses as long as its policy says.
pub const OUTCOME_BACK_OFF_MS_MAX: u64 = 60_000;
/// Most outcomes that one run takes off an outbox.
pub const ROWS_PER_RUN_MAX: usize = 80;
/// Most outcomes that one run looks at, those included that are left out.
pub const ROWS_LOOKED_AT_MAX: usize = 256;
/// The longest pause that a sink may ask for, in milliseconds: a day.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// From which age on a run warns of outcomes that still wait, by default, in milliseconds.
pub const BACKLOG_LAG_WARN_MS: u64 = 60_000;

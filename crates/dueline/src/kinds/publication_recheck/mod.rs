//! A release gate: a record is released when everything it depends on is visible, here and elsewhere.
//!
//! For whoever publishes what refers to other things: a post with its images, a manifest with its blobs, a
//! view with its sources. The record is written with a timer; the timer looks at the dependencies until all
//! are visible, then releases the record in the batch that ends the timer. What a record is, when a row is
//! visible and what a release does, the application says by a [`Gate`].
//!
//! # States
//! ```text
//!   written ---> waiting --- all visible ------> released, timer gone
//!                |  ^  ^ |
//!                |  |  | +-- an obligation is open: position 0, again in 5 s, nothing is read elsewhere
//!                |  |  +---- one is missing: position of that one, again in 5 s
//!                |  +------- 128 remote reads: position so far, again at once
//!                +---------> gone, or waits for nothing: timer gone
//! ```
//! * **The walk.** Dependencies in other partitions are read in the order of partition and key, eight of
//!   one partition at a time, at most 128 reads a fire. It stops at the first that is not visible.
//!   The position is kept in the timer's payload: what was seen is not read again.
//! * **The digest.** A position holds for the record, its generation, its obligations and its dependencies as
//!   they were. If any of them has changed, the walk starts over.
//! * **Local dependencies** may be withdrawn: they are read, 256 at a time, in the fire that releases, and
//!   guarded if all of them find room in its batch (about 80, and 512 KiB). With more of them a withdrawal
//!   must change a row of [`Gate::state_keys`].
//! * **Guards.** A checkpoint and a release guard the record and its state rows as the walk saw them, and
//!   commit within ten seconds. One that loses is tried again later, from the cursor that was there.
//! * **One timer a record**, named after it. There is no reverse index of who waits for what; the price is
//!   a look every five seconds, or at once by [`Rechecks::look_now`].
//!
//! ```
//! use std::sync::Arc;
//! use dueline::BoxFuture;
//! use dueline::kinds::publication_recheck::{
//!     Dependency, Gate, Gated, GatedRecord, PublicationRecheck, Rechecks,
//! };
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, Key, NamespaceStore, Partition, ReadStore, Value};
//! use dueline::timers::{Engine, HandlerError, Registry, TickBudget, TimerCtx, Timers, run_due};
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! /// A post names the image that it shows.
//! struct Images;
//!
//! impl Gate for Images {
//!     fn gated(&self, post: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
//!         let image = Dependency {
//!             partition: Partition::new("images")?,
//!             key: post.value.clone(),
//!         };
//!         Ok(Some(Gated {
//!             generation: 0,
//!             obligations: "".into(),
//!             is_obliged: false,
//!             dependencies: vec![image],
//!         }))
//!     }
//!
//!     fn is_visible(&self, _: &Dependency, row: Option<&Value>) -> bool {
//!         row.is_some()
//!     }
//!
//!     fn release<'a>(
//!         &'a self,
//!         _: &'a TimerCtx<'a>,
//!         post: &'a GatedRecord,
//!     ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
//!         let batch = Batch::new()
//!             .delete(post.key.clone())
//!             .put("published", post.value.clone());
//!         Box::pin(async move { Ok(batch) })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! let timers = Timers::new(store.clone(), test_runtime(&clock));
//! let (kind, gate) = PublicationRecheck::new(Images, timers.clone()).entry();
//! let engine = Engine::new(store.clone(), test_runtime(&clock), Registry::new().with(kind, gate)?);
//! let (blog, images) = (Partition::new("blog")?, Partition::new("images")?);
//! let look = async || {
//!     for call in run_due(&engine, &blog, TickBudget::default()).await.calls {
//!         engine.settle(call.run().await).await;
//!     }
//! };
//!
//! block_on(async {
//!     let post = Key::from("post/1");
//!     let plan = Rechecks::new(timers).plan_new(&post)?;
//!     store.apply(&blog, Batch::new().put(post, "cat.png").append(plan.batch)).await?;
//!     look().await;
//!     assert_eq!(store.get(&blog, &"published".into()).await?, None);
//!
//!     store.apply(&images, Batch::new().put("cat.png", "...")).await?;
//!     clock.advance_ms(5_000);
//!     look().await;
//!     assert_eq!(store.get(&blog, &"published".into()).await?, Some("cat.png".into()));
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # Rows
//! None beside the application's: the timer is named after the record, and its payload is the cursor. See
//! `FORMAT.md`.
//!
//! # Costs
//! Counted by the suite, the engine's claim of a detached call included. A fire is two commits. It reads
//! the record and its state together, once; each page of eight remote dependencies, once in all its fires
//! but for the page that is blocked; and in the fire that may release each page of 256 local ones. It
//! puts four rows and deletes two, those of its named timer; a release puts two and deletes three beside its own
//! rows. 4,352 dependencies in as many partitions take 34 fires.
//!
//! # Limits
//! A record has at most 8,192 dependencies and eight state rows, a key of at most 512 bytes, and a release at
//! most 80 operations; the record, its state rows and the release are one batch of at most 1 MiB, in which
//! the record counts as often as it is guarded or written. A dependency elsewhere that was seen visible is not looked at again while nothing of
//! the digest changes: what is withdrawn there must change the record or its generation. The clock of the
//! process may be at most ten seconds behind the store's, or nothing is released.

mod cursor;
mod gate;
mod handler;
mod rechecks;
mod walk;

pub(super) use cursor::FORMS;
pub use gate::{
    DEPENDENCIES_MAX, Dependency, Gate, Gated, GatedRecord, RemoteAllowance, STATE_KEYS_MAX,
};
pub use handler::{PublicationRecheck, RECHECK_MS};
pub use rechecks::Rechecks;
pub use walk::{LOCAL_PAGE_KEYS, REMOTE_PAGE_KEYS, REMOTE_READS_MAX};

use crate::kind::TimerKind;

/// The kind of the timer that looks at a record's dependencies.
pub const PUBLICATION_RECHECK: TimerKind = TimerKind(12);

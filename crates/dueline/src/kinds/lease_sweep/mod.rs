//! Leases: one holder at a time, a fencing epoch, and an end that waits for the holder's work.
//!
//! For whoever needs that at most one of several does something: a leader, the worker of a shard, the
//! writer of a file. A lease lies in a partition, beside the state it protects, so that the holder's
//! writes can be fenced: a batch with the holder's [`Fence`] loses once the lease is somebody else's.
//!
//! # States
//! ```text
//!             grant                     release, or swept
//!   vacant ----------> held (epoch n) --------------------> vacant (last epoch n)
//!                       |   ^   ^  |
//!                       +---+   |  | expired
//!                       renew   |  v
//!                               +-- swept: source says Working (kept, watermark raised)
//! ```
//! * **One holder.** A grant succeeds only while nobody holds the lease. Expiry alone frees nothing:
//!   the sweep does, as soon as the [`LeaseSource`] says that the holder's work has drained.
//! * **Epochs grow.** Every grant has an epoch higher than all before it, over releases and sweeps too:
//!   the last epoch stays in a row of its own when the lease goes ([`Leases::plan_forget`] removes it).
//! * **The sweep.** At the expiry the source is asked. `Drained`: the lease goes, in one batch with its
//!   timer. `Working`: it is kept, its watermark raised, asked again every 10 s, and warned of once it is
//!   kept for over 60 s. `Missing` or an error: kept, and asked again after a back-off, for ever.
//! * **Renewals.** A renewal has a timer of its own; the one before it finds that the lease waits for
//!   another and drains. A renewal that commits while the source is asked makes the sweep's batch lose.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::kinds::lease_sweep::{Grant, LeaseName, LeaseOwner, Leases, LeaseSweep, NothingToDrain};
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, NamespaceStore, Partition};
//! use dueline::timers::{Engine, Registry, TickBudget, run_due};
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! let (kind, sweep) = LeaseSweep::new(NothingToDrain).entry();
//! let engine = Engine::new(store.clone(), test_runtime(&clock), Registry::new().with(kind, sweep)?);
//! let leases = Leases::new(engine.timers().clone());
//! let (shard, leader) = (Partition::new("shard-7")?, LeaseName::new("leader")?);
//! let (ann, bob) = (LeaseOwner::new("ann")?, LeaseOwner::new("bob")?);
//!
//! block_on(async {
//!     let Grant::Granted(anns) = leases.grant(&shard, &leader, &ann, 30_000).await? else { panic!() };
//!     let write = anns.fence().guard(Batch::new()).put("state", "by ann");
//!     assert!(store.apply(&shard, write.clone()).await?.is_committed());
//!     assert!(matches!(leases.grant(&shard, &leader, &bob, 30_000).await?, Grant::Held(_)));
//!
//!     // Ann is gone; at the expiry the lease is swept, and Bob has the next epoch.
//!     clock.advance_ms(30_000);
//!     for call in run_due(&engine, &shard, TickBudget::default()).await.calls {
//!         engine.settle(call.run().await).await;
//!     }
//!     let Grant::Granted(bobs) = leases.grant(&shard, &leader, &bob, 30_000).await? else { panic!() };
//!     assert!(bobs.epoch > anns.epoch);
//!     assert!(!store.apply(&shard, write).await?.is_committed(), "Ann comes too late");
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # Rows
//! `l` + name: the lease while it is held. `e` + name: its last epoch, for ever. See `FORMAT.md`.
//!
//! # Costs
//! Counted by the suite. A verb is one read and one commit: a grant of 6 operations, a renewal and a
//! release of 4. A sweep is the claim of a detached call, one read in the call, and one read and one
//! commit to settle it. Each renewal leaves a timer that drains at its due, which costs the same; with a
//! term of 30 s renewed every 10 s three of them wait at a time.
//!
//! # Limits
//! A name and an owner have 1 to 256 bytes. The fence guards writes in the partition of the lease; what is
//! written elsewhere must compare [`Lease::epoch`] there. A vacant lease keeps a row of its name's length
//! and 22 bytes.

mod handler;
mod lease;
mod planners;
mod rows;

pub use handler::{Drain, LeaseSource, LeaseSweep, NothingToDrain};
pub use lease::{Fence, Lease, LeaseName, LeaseOwner};
pub use planners::{Grant, LeaseState, Leases, Release, Renewal};
pub(super) use rows::FORMS;

use crate::kind::TimerKind;

/// The kind of the timer that sweeps one lease.
pub const LEASE_SWEEP: TimerKind = TimerKind(1);
/// Longest name of a lease, in bytes.
pub const LEASE_NAME_BYTES_MAX: usize = 256;
/// Longest owner of a lease, in bytes.
pub const LEASE_OWNER_BYTES_MAX: usize = 256;

//! What a test of Dueline needs: a clock that stands still, a store that fails on demand, and the
//! conformance suite that every store must pass.
//!
//! Nothing here needs a runtime. [`block_on`] runs the futures of a store; an engine in a test is
//! given [`test_runtime`], whose time moves only when the test moves it.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, BatchOutcome, NamespaceStore, Partition};
//! use dueline_testkit::{ManualClock, block_on};
//!
//! let clock = ManualClock::new(1_000);
//! let store = MemoryStore::new(Arc::new(clock.clone()));
//! let order = Partition::new("order-42")?;
//!
//! let late = Batch::new().require(dueline::store::Precondition::NotAfter(1_500));
//! assert_eq!(block_on(store.apply(&order, late.clone()))?, BatchOutcome::Committed);
//! clock.advance(Duration::from_millis(501));
//! assert_eq!(
//!     block_on(store.apply(&order, late))?,
//!     BatchOutcome::DeadlinePassed { backend_now_ms: 1_501 },
//! );
//! # Ok::<(), dueline::store::StoreError>(())
//! ```

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

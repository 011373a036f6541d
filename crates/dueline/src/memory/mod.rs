//! A store in memory: for tests, for programs that need no durability, and as the model that other
//! stores are measured against.
//!
//! Everything is lost with the process. Within it the store keeps the whole contract: guarded
//! batches, group commits, wakes, a capacity limit with a reserve. A call never waits for anything
//! but the one mutex, so one poll completes its future.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use dueline::memory::MemoryStore;
//! use dueline::runtime::Clock;
//!
//! #[derive(Debug)]
//! struct Noon;
//!
//! impl Clock for Noon {
//!     fn wall_ms(&self) -> i64 {
//!         1_700_000_000_000
//!     }
//!     fn monotonic(&self) -> Duration {
//!         Duration::ZERO
//!     }
//! }
//!
//! let store = MemoryStore::new(Arc::new(Noon)).with_capacity_limit(64 << 20);
//! assert_eq!(store.bytes(), 0);
//! ```

mod commit;
mod fault;
#[cfg(dueline_mutants)]
mod heads_seen;
mod read;
mod state;
mod transaction;
mod wake;
mod wake_index;

pub use fault::Fault;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::BATCH_BYTES_MAX;
use crate::runtime::Clock;
use crate::store::{Key, Partition, StoreError, Value, Wake};
use state::State;

/// What a store may hold, in bytes of keys and values over all partitions.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    limit_bytes: u64,
    reserve_bytes: u64,
}

impl Capacity {
    /// The most the store may hold behind a batch that puts.
    fn bound(self, uses_reserve: bool) -> u64 {
        if uses_reserve {
            self.limit_bytes.saturating_add(self.reserve_bytes)
        } else {
            self.limit_bytes
        }
    }
}

/// A store in memory. See the [module](self).
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    capacity: Option<Capacity>,
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store without a capacity limit, whose time bounds and wakes go by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            capacity: None,
            state: Mutex::new(State::default()),
        }
    }

    /// The same store with a limit on its bytes of keys and values, over all partitions.
    ///
    /// A batch that puts anything is refused as `Full` if the store would be over the limit behind
    /// it. Deletes always work. Batches with [`uses_reserve`](crate::store::Batch::uses_reserve) may
    /// go over the limit by the reserve: a sixty-fourth of the limit and at least 2 MiB, unless
    /// [`with_reserve`](Self::with_reserve) says otherwise.
    #[must_use]
    pub fn with_capacity_limit(mut self, limit_bytes: u64) -> Self {
        let two_batches = 2 * BATCH_BYTES_MAX as u64;
        self.capacity = Some(Capacity {
            limit_bytes,
            reserve_bytes: (limit_bytes / 64).max(two_batches),
        });
        self
    }

    /// The same store with another reserve beyond its capacity limit. Without a limit there is
    /// nothing to reserve and this changes nothing.
    #[must_use]
    pub fn with_reserve(mut self, reserve_bytes: u64) -> Self {
        if let Some(capacity) = &mut self.capacity {
            capacity.reserve_bytes = reserve_bytes;
        }
        self
    }

    /// Makes the next commit fail in this way: the next `apply`, `apply_all` or `settle_wake` whose
    /// arguments are valid. One shot; a second call before it replaces the fault.
    pub fn fail_next_apply(&self, fault: Fault) {
        self.lock().fault = Some(fault);
    }

    /// Every row of a partition, in key order.
    pub fn rows(&self, partition: &Partition) -> Vec<(Key, Value)> {
        self.lock()
            .partition(partition)
            .map(|held| {
                held.iter()
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Every wake, in the order of time, partition and kind.
    pub fn wakes(&self) -> Vec<Wake> {
        self.lock().wakes.all()
    }

    /// Bytes of keys and values held, over all partitions.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes()
    }

    /// Takes one wake away, as no store ever should, and says whether it was there. For tests of an
    /// audit: the lane sleeps until its next put or until
    /// [`audit_wakes`](crate::store::WakeStore::audit_wakes) has looked at it.
    pub fn remove_wake(&self, wake: &Wake) -> bool {
        self.lock().wakes.remove(wake)
    }

    /// A panic in one call (of the clock, say) leaves the state whole, because the journal undoes an
    /// unfinished batch; so a poisoned lock is taken as it is.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> BackendNow {
        BackendNow(u64::try_from(self.clock.wall_ms()).ok())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// One reading of the clock; nothing before 1970, where no time bound may hold.
#[derive(Clone, Copy, Debug)]
struct BackendNow(Option<u64>);

impl BackendNow {
    /// The time as [`Runtime::now_ms`](crate::runtime::Runtime::now_ms) shows it.
    fn or_zero(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

fn check_page_limit(limit: usize) -> Result<(), StoreError> {
    if limit == 0 {
        return Err(StoreError::invalid("a page needs a limit of at least 1"));
    }
    Ok(())
}

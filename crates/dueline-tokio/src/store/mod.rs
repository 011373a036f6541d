//! The store as a driver's program must see it: every commit tells the driver how early it makes a
//! lane wake.

mod earliest;
mod watched;

use std::sync::Arc;

use dueline::store::{NamespaceStore, WakeStore};

use crate::looks::Looks;
use crate::task_host::TaskHost;
use watched::{Abandoned, Watched};

/// A store whose commits wake the driver that runs on it. Cheap to clone; clones are one store.
///
/// A driver on a store of its own sleeps until the next timer it knows of. So every timer must be
/// scheduled through this store, or through what [`Handle::timers`](crate::Handle::timers) gives:
/// one written to the store inside is found only when the driver looks for another reason.
///
/// The driver is told within the commit itself: a caller that stops waiting half-way (a cancelled
/// request) does not stop the commit, nor the telling.
#[derive(Clone, Debug)]
pub struct DriverStore {
    pub(crate) inner: Arc<dyn WakeStore>,
    pub(crate) looks: Arc<Looks>,
    watched: Arc<Watched>,
}

impl DriverStore {
    /// Watches the commits of this store.
    pub fn new(store: Arc<dyn WakeStore>) -> Self {
        Self::hosted(store, None)
    }

    /// The same, with commits whose callers have gone finished by this host.
    pub(crate) fn hosted(store: Arc<dyn WakeStore>, host: Option<Arc<dyn TaskHost>>) -> Self {
        let looks = Arc::new(Looks::default());
        Self {
            watched: Arc::new(Watched::new(
                Arc::clone(&store),
                Arc::clone(&looks),
                Abandoned::RunsOn(host),
            )),
            inner: store,
            looks,
        }
    }

    /// The store for everybody but the driver: handlers, servers, [`Engine`](dueline::timers::Engine).
    pub fn to_store(&self) -> Arc<dyn NamespaceStore> {
        Arc::<Watched>::clone(&self.watched)
    }

    /// The same with its wakes.
    pub fn to_wake_store(&self) -> Arc<dyn WakeStore> {
        Arc::<Watched>::clone(&self.watched)
    }

    /// The store for the threads that tick: without a hop between threads, where it can.
    pub(crate) fn for_threads(&self) -> Arc<dyn WakeStore> {
        let inner = self
            .inner
            .for_blocking_threads()
            .unwrap_or_else(|| Arc::clone(&self.inner));
        Arc::new(Watched::new(
            inner,
            Arc::clone(&self.looks),
            Abandoned::Dropped,
        ))
    }
}

impl From<Arc<dyn WakeStore>> for DriverStore {
    fn from(store: Arc<dyn WakeStore>) -> Self {
        Self::new(store)
    }
}

impl<S: WakeStore + 'static> From<Arc<S>> for DriverStore {
    fn from(store: Arc<S>) -> Self {
        Self::new(store)
    }
}

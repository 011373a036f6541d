use std::sync::Arc;

use crate::runtime::Runtime;
use crate::store::NamespaceStore;

/// The verbs of scheduling, over one store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Timers {
    store: Arc<dyn NamespaceStore>,
    runtime: Runtime,
}

impl Timers {
    /// The verbs over this store. All writers of one process share one runtime.
    pub fn new(store: Arc<dyn NamespaceStore>, runtime: Runtime) -> Self {
        Self { store, runtime }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn NamespaceStore> {
        &self.store
    }

    /// The injected host.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

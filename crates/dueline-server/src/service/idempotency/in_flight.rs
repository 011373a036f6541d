use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::store::Partition;

/// The keys whose requests are being carried out now, in this process: the only one that writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    keys: Arc<Mutex<BTreeSet<(Partition, String)>>>,
}

/// One key; free again when dropped.
#[derive(Debug)]
pub(super) struct Holding {
    in_flight: InFlight,
    entry: (Partition, String),
}

impl InFlight {
    /// Takes a key, unless a request holds it.
    pub(super) fn take(&self, partition: &Partition, key: &str) -> Option<Holding> {
        let entry = (partition.clone(), key.to_owned());
        self.lock().insert(entry.clone()).then(|| Holding {
            in_flight: self.clone(),
            entry,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Partition, String)>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.entry);
    }
}

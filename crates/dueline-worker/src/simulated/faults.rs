use dueline::store::{StoreError, StoreErrorKind};

/// A call that an instance makes of its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StorageCall {
    /// A read of the database.
    Read,
    /// A transaction.
    Transaction,
    /// A read of the alarm.
    GetAlarm,
    /// A write of the alarm, refused at once.
    SetAlarm,
    /// A write of the alarm, accepted and then refused.
    ConfirmAlarm,
    /// A wait for durability. Whether what was written becomes durable is not known then.
    Sync,
}

type Decide = dyn FnMut(StorageCall) -> Option<StoreErrorKind> + Send;

/// Decides which calls fail.
#[derive(Default)]
pub struct StorageFaults(Option<Box<Decide>>);

impl StorageFaults {
    /// Nothing fails.
    pub fn none() -> Self {
        Self(None)
    }

    /// This decides, call by call.
    pub fn decided_by(
        decide: impl FnMut(StorageCall) -> Option<StoreErrorKind> + Send + 'static,
    ) -> Self {
        Self(Some(Box::new(decide)))
    }

    pub(super) fn check(&mut self, call: StorageCall) -> Result<(), StoreError> {
        let Some(decide) = &mut self.0 else {
            return Ok(());
        };
        match decide(call) {
            Some(kind) => Err(StoreError::new(kind, "refused by the simulated storage")),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for StorageFaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StorageFaults").finish_non_exhaustive()
    }
}

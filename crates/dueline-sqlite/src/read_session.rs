use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::sql::{PartitionMemo, Reads};
use dueline::store::StoreError;

use crate::backend::Backend;
use crate::counters::count;
use crate::error::store_error;
use crate::open::open_reader;
use crate::shared::Shared;

/// One thread's reading: its connection, opened at the first read, and the read transaction that a
/// group of reads shares.
#[derive(Debug, Default)]
pub(crate) struct ReadSession {
    backend: Option<Backend>,
    in_transaction: bool,
    memo: PartitionMemo,
    retired: bool,
}

/// A session is used by one thread; the lock lets the store close it.
pub(crate) type SharedSession = Arc<Mutex<ReadSession>>;

pub(crate) fn locked(session: &Mutex<ReadSession>) -> MutexGuard<'_, ReadSession> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReadSession {
    /// Reads in the open transaction, or begins one.
    pub(crate) fn read<T>(
        &mut self,
        shared: &Shared,
        read: impl FnOnce(Reads<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let result = self.begin(shared).and_then(|backend| {
            count(&shared.counting.reads);
            read(Reads::new(backend.0, backend.1))
        });
        if result.is_err() {
            self.end();
        }
        result
    }

    fn begin(&mut self, shared: &Shared) -> Result<(&Backend, &PartitionMemo), StoreError> {
        if self.in_transaction {
            shared.gate.check()?;
        } else {
            shared.gate.pass()?;
        }
        let backend = match self.backend.take() {
            Some(backend) => self.backend.insert(backend),
            None => {
                let opened = open_reader(&shared.path, &shared.options).map_err(store_error)?;
                self.backend.insert(opened)
            }
        };
        if !self.in_transaction {
            backend.control("BEGIN").map_err(store_error)?;
            self.in_transaction = true;
            count(&shared.counting.read_transactions);
        }
        Ok((backend, &self.memo))
    }

    /// Ends the read transaction, so that the log can be restarted and the next read sees what has
    /// been committed.
    pub(crate) fn end(&mut self) {
        if !self.in_transaction {
            return;
        }
        self.in_transaction = false;
        self.memo.clear();
        if let Some(backend) = &self.backend
            && let Err(error) = backend.control("COMMIT")
        {
            tracing::warn!(%error, "a read transaction did not end; its connection is dropped");
            self.backend = None;
        }
    }

    /// Closes the connection; a later read opens another.
    pub(crate) fn close(&mut self) {
        self.end();
        self.backend = None;
    }

    /// Closes the connection of a store that is closed.
    pub(crate) fn retire(&mut self) {
        self.close();
        self.retired = true;
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired
    }
}

//! The store contract on the database of one object. Every call runs in the turn that polls it first;
//! a commit that makes something due earlier sets the alarm in that turn, before it commits.

mod commit;
mod contract;
mod effects;
mod heads;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::runtime::Runtime;
use dueline::sql::{Reads, SizeLimit, Writer, schema};
use dueline::store::StoreError;
use dueline::timers::KindSet;

use crate::storage::ObjectStorage;

pub use effects::effect_mark;
pub(crate) use heads::Turn;
use state::State;

/// The store of one Durable Object, made by [`ObjectDriver::open`](crate::ObjectDriver::open).
///
/// It may hold many logical partitions. Whatever is written goes through it: what is put past it is not
/// seen by the alarm.
pub struct ObjectStore {
    pub(crate) storage: Arc<dyn ObjectStorage>,
    pub(crate) runtime: Runtime,
    state: Mutex<State>,
}

impl ObjectStore {
    /// Creates or migrates the tables and says what the last instance left.
    pub(crate) fn open(
        storage: Arc<dyn ObjectStorage>,
        runtime: Runtime,
        size_limit: Option<SizeLimit>,
    ) -> Result<Self, StoreError> {
        let mut is_current = false;
        storage.read(&mut |conn| {
            is_current = schema::version(conn)? == Some(schema::SCHEMA_VERSION);
            Ok(())
        })?;
        while !is_current {
            let mut took_a_step = false;
            storage.transaction(&mut |conn| {
                took_a_step = schema::migrate_step(conn)?;
                Ok(())
            })?;
            is_current = !took_a_step;
        }
        let mut opened = None;
        storage.read(&mut |conn| {
            // An object's application can wrap verbs in a transaction of its own, and give it up.
            let writer = Writer::new(conn, size_limit)?.doubted();
            opened = Some((writer, schema::unclean_mark(conn)?));
            Ok(())
        })?;
        let Some((writer, is_marked)) = opened else {
            return Err(StoreError::unavailable("the storage did not read"));
        };
        Ok(Self {
            storage,
            runtime,
            state: Mutex::new(State::new(writer, is_marked)),
        })
    }

    /// The kinds whose wakes set the alarm: those with a handler here, and kind 0. None before a registry
    /// is there.
    pub(crate) fn kinds(&self) -> KindSet {
        self.lock().kinds
    }

    pub(crate) fn set_kinds(&self, kinds: KindSet) {
        self.lock().kinds = kinds;
    }

    /// Reads in the present turn.
    fn read<T>(
        &self,
        ask: impl FnOnce(&Reads<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut ask = Some(ask);
        let mut answer = None;
        self.storage.read(&mut |conn| {
            let Some(ask) = ask.take() else { return Ok(()) };
            answer = Some(ask(&Reads::by_name(conn))?);
            Ok(())
        })?;
        answer.ok_or_else(|| StoreError::unavailable("the storage did not read"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectStore")
    }
}

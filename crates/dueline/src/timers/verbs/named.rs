//! Reading a name, and the row it points at, as one.

use bytes::Bytes;

use super::TimerState;
use super::commit::Tries;
use crate::limits::REFERENCE_BYTES_MAX;
use crate::mutants::{Mutant, planted};
use crate::rows::{Malformed, NameKey, NameRow};
use crate::store::{Key, Partition, StoreError, Value};
use crate::timers::{TimerError, TimerKind, Timers};

/// A name row as it was read: the guard of everything that is planned from it.
#[derive(Clone, Debug)]
pub(super) struct NameEntry {
    pub(super) name: NameKey,
    pub(super) row: NameRow,
    pub(super) value: Value,
}

impl NameEntry {
    pub(super) fn decode(name: &NameKey, value: Value) -> Result<Self, TimerError> {
        let row = NameRow::decode(&value).map_err(|error| corrupt("a name row", error))?;
        Ok(Self {
            name: name.clone(),
            row,
            value,
        })
    }

    pub(super) fn state(&self) -> TimerState {
        self.row.state.into()
    }

    /// The key of the timer's row, or of its dead row.
    pub(super) fn target(&self) -> Key {
        self.row.target(&self.name)
    }

    /// Refuses another generation than the one asked for.
    pub(super) fn require_generation(&self, if_match: Option<u64>) -> Result<(), TimerError> {
        match if_match {
            Some(generation)
                if generation != self.row.generation && !planted(Mutant::IfMatchIgnored) =>
            {
                Err(TimerError::GenerationMismatch {
                    current: self.row.generation,
                })
            }
            _ => Ok(()),
        }
    }
}

/// What is stored does not decode.
pub(super) fn corrupt(what: &'static str, error: Malformed) -> TimerError {
    TimerError::Store(StoreError::corrupt(format!(
        "{what} does not decode: {error}"
    )))
}

/// The key of a name, once its parts are within the limits.
pub(super) fn name_key(kind: TimerKind, reference: &Bytes) -> Result<NameKey, TimerError> {
    require_kind(kind)?;
    if reference.len() > REFERENCE_BYTES_MAX {
        return Err(TimerError::invalid(format!(
            "a reference has at most {REFERENCE_BYTES_MAX} bytes, this one has {}",
            reference.len()
        )));
    }
    Ok(NameKey {
        kind,
        reference: reference.clone(),
    })
}

/// Refuses the kind that no timer has.
pub(super) fn require_kind(kind: TimerKind) -> Result<(), TimerError> {
    if kind.is_valid() {
        Ok(())
    } else {
        Err(TimerError::invalid("a timer needs a kind from 1 to 255"))
    }
}

impl Timers {
    pub(super) async fn read_name(
        &self,
        partition: &Partition,
        name: &NameKey,
    ) -> Result<Option<NameEntry>, TimerError> {
        match self.store().get(partition, &name.encode()).await? {
            Some(value) => NameEntry::decode(name, value).map(Some),
            None => Ok(None),
        }
    }

    /// The name and the value of the row it points at; `None` only if there is no such name.
    pub(super) async fn read_named(
        &self,
        partition: &Partition,
        name: &NameKey,
    ) -> Result<Option<(NameEntry, Value)>, TimerError> {
        let mut tries = Tries::default();
        loop {
            let Some(entry) = self.read_name(partition, name).await? else {
                return Ok(None);
            };
            if let Some(value) = self.store().get(partition, &entry.target()).await? {
                return Ok(Some((entry, value)));
            }
            // A move fell between the two reads.
            tries.changed()?;
        }
    }
}

use bytes::Bytes;

use super::DeadId;
use crate::rows::{DeadKey, DeadReason, DeadRow, Failure};
use crate::store::Value;
use crate::timers::TimerKind;

/// A timer that was given up, with what is needed to judge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadView {
    /// Its id, for [`requeue`](crate::timers::Timers::requeue) and
    /// [`purge`](crate::timers::Timers::purge).
    pub id: DeadId,
    /// The kind of the lane it came from, and would go back to.
    pub kind: TimerKind,
    /// The caller's identity of it.
    pub reference: Bytes,
    /// Whether it has a name.
    pub named: bool,
    /// Why it is dead.
    pub reason: DeadReason,
    /// The version of the codec that could not decode its payload; 0 for another reason.
    pub codec_version: u16,
    /// What it died of, if there is a text.
    pub error: Option<Failure>,
    /// When it died, in milliseconds since 1970.
    pub dead_at_ms: u64,
    /// The due as it was asked for, in milliseconds since 1970.
    pub due_at_ms: u64,
    /// Failed or claimed runs.
    pub attempt: u16,
    /// Which scheduling it is.
    pub generation: u64,
    /// The caller's bytes; with [`DeadReason::UndecodableHeader`] the whole value as found.
    pub payload: Bytes,
}

/// Dead timers in the order of kind and time of death.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadPage {
    /// The dead timers in the order of kind and time of death.
    pub dead: Vec<DeadView>,
    /// Where to go on; `None` at the end.
    pub next: Option<DeadId>,
}

impl DeadView {
    /// Reads a dead row. One whose value does not decode is shown as it lies, so that it can be
    /// found and purged.
    pub(super) fn read(key: DeadKey, value: &Value) -> Self {
        let id = DeadId::of(&key);
        match DeadRow::decode(value) {
            Ok(row) => Self {
                id,
                kind: key.kind,
                reference: key.reference,
                named: row.header.flags.named,
                reason: row.reason,
                codec_version: row.codec_version,
                error: row.header.failure,
                dead_at_ms: key.dead_at_ms,
                due_at_ms: row.header.original_due_ms,
                attempt: row.header.attempt,
                generation: key.generation,
                payload: row.payload,
            },
            Err(error) => Self {
                id,
                kind: key.kind,
                reference: key.reference,
                named: false,
                reason: DeadReason::UndecodableHeader,
                codec_version: 0,
                error: Some(Failure::new(key.dead_at_ms, &error.to_string())),
                dead_at_ms: key.dead_at_ms,
                due_at_ms: key.dead_at_ms,
                attempt: 0,
                generation: key.generation,
                payload: value.clone(),
            },
        }
    }
}

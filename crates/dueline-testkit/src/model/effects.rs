//! The rows by which handlers of a test say what their batches do: which timer took effect, which
//! other one they remove.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use dueline::store::{Batch, Key, Value, Write};
use dueline::timers::{DueTimer, TimerKind};

use super::Occurrence;

const EFFECT: &[u8] = b"fx/";
const CUT: &[u8] = b"cut/";

/// What the row of an effect tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectTold {
    /// The occurrence that took effect.
    pub occurrence: Occurrence,
    /// The attempt, as its handler saw it; 0 if the row does not tell.
    pub attempt: u16,
    /// The due as it was asked for, in milliseconds since 1970; 0 if the row does not tell.
    pub due_ms: u64,
    /// The due that its handler asks for next.
    pub next_due_ms: Option<u64>,
}

fn marker(prefix: &[u8], of: &Occurrence) -> Key {
    let mut key = BytesMut::new();
    key.put_slice(prefix);
    key.put_u8(of.kind.0);
    key.put_u64(of.generation);
    key.put_slice(&of.reference);
    key.freeze()
}

fn marked(prefix: &[u8], key: &Key) -> Option<Occurrence> {
    let rest = key.strip_prefix(prefix)?;
    let (kind, rest) = rest.split_first()?;
    let (generation, reference) = rest.split_first_chunk::<8>()?;
    Some(Occurrence {
        kind: TimerKind(*kind),
        generation: u64::from_be_bytes(*generation),
        reference: Bytes::copy_from_slice(reference),
    })
}

/// The row a handler puts to say that this run took effect. A batch in which a timer ends (done, or
/// scheduled again) must hold its key, and no other batch ever may.
pub fn effect_key(timer: &DueTimer) -> Key {
    effect_key_of(&Occurrence {
        kind: timer.kind(),
        generation: timer.generation(),
        reference: timer.reference().clone(),
    })
}

/// The row that says that this occurrence took effect.
pub fn effect_key_of(occurrence: &Occurrence) -> Key {
    marker(EFFECT, occurrence)
}

/// Puts the row of this run's effect, with what it tells: `attempt:u16 due_ms:u64`, and the due that
/// comes next if there is one.
#[must_use]
pub fn mark_effect(batch: Batch, timer: &DueTimer, next_due_ms: Option<u64>) -> Batch {
    let mut told = BytesMut::with_capacity(18);
    told.put_u16(timer.attempt());
    told.put_u64(timer.due_at_ms());
    if let Some(next_due_ms) = next_due_ms {
        told.put_u64(next_due_ms);
    }
    batch.put(effect_key(timer), told.freeze())
}

/// The row a handler puts to say that its batch removes this other timer.
pub fn cut_key(occurrence: &Occurrence) -> Key {
    marker(CUT, occurrence)
}

/// The occurrences that this batch says took effect.
pub fn effects_of(batch: &Batch) -> BTreeSet<Occurrence> {
    markers(batch, EFFECT).map(|(of, _)| of).collect()
}

/// The same with what their rows tell.
pub fn effects_told(batch: &Batch) -> Vec<EffectTold> {
    markers(batch, EFFECT)
        .map(|(occurrence, told)| {
            let number = |at: usize| {
                let bytes = told.get(at..)?.first_chunk::<8>()?;
                Some(u64::from_be_bytes(*bytes))
            };
            let attempt = told.first_chunk::<2>().copied().map(u16::from_be_bytes);
            EffectTold {
                occurrence,
                attempt: attempt.unwrap_or(0),
                due_ms: number(2).unwrap_or(0),
                next_due_ms: number(10),
            }
        })
        .collect()
}

/// The occurrences that this batch says it removes.
pub fn cuts_of(batch: &Batch) -> BTreeSet<Occurrence> {
    markers(batch, CUT).map(|(of, _)| of).collect()
}

fn markers<'a>(
    batch: &'a Batch,
    prefix: &'static [u8],
) -> impl Iterator<Item = (Occurrence, &'a Value)> {
    batch.writes.iter().filter_map(move |write| match write {
        Write::Put(key, value) => Some((marked(prefix, key)?, value)),
        Write::Delete(_) => None,
    })
}

//! What a batch did to the timers and dead timers of a partition.

use std::collections::BTreeMap;

use bytes::Bytes;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Header, NameKey, NameRow, TimerKey, TimerRow, class, class_end,
    class_start,
};
use dueline::store::{Batch, Key, Value};

use super::Occurrence;

/// Reasons of the engine's own, for which no attempt is charged.
const STORE_FAULTS: [&str; 3] = [
    "the store is full",
    "the outcome of the commit was unknown",
    "the call could not begin before its claim was about to end",
];

/// Where an occurrence lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: dueline::timers::TimerKind,
    pub(super) reference: Bytes,
    pub(super) generation: u64,
    pub(super) at_ms: u64,
    pub(super) dead: Option<DeadReason>,
    /// `None` if the row's header does not decode.
    pub(super) header: Option<Header>,
    payload: Bytes,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    New { occurrence: Occurrence },
    Gone { occurrence: Occurrence, from: Place },
    Moved { from: Place, to: Place },
    Twice { occurrence: Occurrence },
}

impl Place {
    /// The place that a key of a timer or dead timer names, without its row.
    pub(super) fn key_of(key: &Key) -> Option<Self> {
        let (kind, reference, generation, at_ms) = if let Ok(key) = TimerKey::decode(key) {
            (key.kind, key.reference, key.generation, key.due_ms)
        } else {
            let key = DeadKey::decode(key).ok()?;
            (key.kind, key.reference, key.generation, key.dead_at_ms)
        };
        Some(Self {
            kind,
            reference,
            generation,
            at_ms,
            dead: None,
            header: None,
            payload: Bytes::new(),
        })
    }

    fn read(key: &Key, value: &Value) -> Option<Self> {
        let place = Self::key_of(key)?;
        let (dead, header, payload) = if TimerKey::decode(key).is_ok() {
            match TimerRow::decode(value) {
                Ok(row) => (None, Some(row.header), row.payload),
                Err(_) => (None, None, value.clone()),
            }
        } else {
            let row = DeadRow::decode(value).ok()?;
            (Some(row.reason), Some(row.header), row.payload)
        };
        Some(Self {
            dead,
            header,
            payload,
            ..place
        })
    }

    fn occurrence(&self) -> Occurrence {
        Occurrence {
            kind: self.kind,
            generation: self.generation,
            reference: self.reference.clone(),
        }
    }

    /// The name rows that the named timers and dead timers of this name call for.
    pub(super) fn all_named(rows: &BTreeMap<Key, Value>, name: &NameKey) -> Vec<NameRow> {
        let mut named = Vec::new();
        let lanes = [
            (
                TimerKey::lane_start(name.kind),
                TimerKey::lane_end(name.kind),
            ),
            (DeadKey::lane_start(name.kind), DeadKey::lane_end(name.kind)),
        ];
        for (start, end) in lanes {
            for (key, value) in rows.range(start..end) {
                let Some(place) = Self::read(key, value) else {
                    continue;
                };
                let Some(header) = place.header.filter(|header| header.flags.named) else {
                    continue;
                };
                if place.reference != name.reference {
                    continue;
                }
                if let Ok(key) = TimerKey::decode(key) {
                    named.push(NameRow::of(&key, &header));
                } else if let Ok(key) = DeadKey::decode(key) {
                    named.push(NameRow::of_dead(&key));
                }
            }
        }
        named
    }

    /// Whether an effect at this time would be before its due. A claimed timer was found due when it
    /// was claimed, so for it the latest time seen counts: a clock may step back while a call runs.
    pub(super) fn is_early(&self, now_ms: u64, latest_ms: u64) -> bool {
        match &self.header {
            Some(header) if header.flags.claimed => latest_ms < header.original_due_ms,
            Some(header) => now_ms < header.original_due_ms || now_ms < self.at_ms,
            None => false,
        }
    }

    /// The rule that a move of the engine from here to there breaks, if any.
    pub(super) fn breaks_a_rule_on_its_way_to(&self, to: &Self) -> Option<&'static str> {
        let Some(from_header) = &self.header else {
            let kept = to.payload == self.payload;
            return (!kept).then_some("bytes that do not decode were changed");
        };
        let Some(to_header) = &to.header else {
            return Some("a header was lost");
        };
        if to.payload != self.payload || to_header.original_due_ms != from_header.original_due_ms {
            return Some("a move changed the payload or the due as asked");
        }
        if to_header.flags.named != from_header.flags.named {
            return Some("a move changed whether the timer is named");
        }
        let charged = i32::from(to_header.attempt) - i32::from(from_header.attempt);
        let counted = i32::from(from_header.flags.claimed);
        let wanted = if to_header.flags.claimed {
            1
        } else if to.is_set_back(self) || to.dead == Some(DeadReason::UndecodablePayload) {
            -counted
        } else if to.dead == Some(DeadReason::Exhausted) && charged == 0 {
            // All its runs were cut: the last is counted already.
            return (counted == 0).then_some("a timer died of an attempt that was not counted");
        } else {
            1 - counted
        };
        // The same failure in the same millisecond, by a clock that was set back, looks like a release.
        let same_again = charged == 0 && wanted == -1 && to_header.failure == from_header.failure;
        let wrong = charged != wanted && !(same_again && to_header.failure.is_some());
        wrong.then_some("attempts are charged wrongly")
    }

    /// Whether the row came here for a fault of the store or a clean stop.
    fn is_set_back(&self, from: &Self) -> bool {
        let failure = |place: &Self| {
            let header = place.header.as_ref()?;
            header.failure.clone()
        };
        let was_claimed = from
            .header
            .as_ref()
            .is_some_and(|header| header.flags.claimed);
        let released = was_claimed && self.dead.is_none() && failure(self) == failure(from);
        released
            || failure(self).is_some_and(|failure| STORE_FAULTS.contains(&failure.error.as_str()))
    }
}

fn places(rows: &BTreeMap<Key, Value>) -> (BTreeMap<Occurrence, Place>, Vec<Occurrence>) {
    let mut found = BTreeMap::new();
    let mut twice = Vec::new();
    for class in [class::TIMER, class::DEAD] {
        for (key, value) in rows.range(class_start(class)..class_end(class)) {
            if let Some(place) = Place::read(key, value) {
                let occurrence = place.occurrence();
                if found.insert(occurrence.clone(), place).is_some() {
                    twice.push(occurrence);
                }
            }
        }
    }
    (found, twice)
}

/// What became of every occurrence whose row the batch wrote.
pub(super) fn changes(
    before: &BTreeMap<Key, Value>,
    after: &BTreeMap<Key, Value>,
    batch: &Batch,
) -> Vec<Change> {
    let touched = batch
        .writes
        .iter()
        .any(|write| Place::key_of(write.key()).is_some());
    if !touched {
        return Vec::new();
    }
    let (before, _) = places(before);
    let (after, twice) = places(after);
    let mut found: Vec<Change> = twice
        .into_iter()
        .map(|occurrence| Change::Twice { occurrence })
        .collect();
    for (occurrence, from) in &before {
        match after.get(occurrence) {
            None => found.push(Change::Gone {
                occurrence: occurrence.clone(),
                from: from.clone(),
            }),
            Some(to) if to != from => found.push(Change::Moved {
                from: from.clone(),
                to: to.clone(),
            }),
            Some(_) => {}
        }
    }
    for occurrence in after.keys().filter(|it| !before.contains_key(it)) {
        found.push(Change::New {
            occurrence: occurrence.clone(),
        });
    }
    found
}

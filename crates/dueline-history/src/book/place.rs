use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dueline::rows::{DeadKey, DeadReason, DeadRow, Header, NameRow, TimerKey, TimerRow};

use crate::{Event, Occurrence, Octets};

/// Where an occurrence lies: a timer's row or a dead one's.
#[derive(Clone)]
pub struct Place {
    /// Which scheduling it is.
    pub occurrence: Occurrence,
    /// The key of its row.
    pub key: Bytes,
    /// The due in the key, or the time of death.
    pub at_ms: u64,
    /// Why it is dead, if it is.
    pub dead: Option<DeadReason>,
    /// Its header; `None` if that does not decode.
    pub header: Option<Header>,
    /// Its payload, or the whole value if that does not decode.
    pub payload: Bytes,
    /// How the row came there.
    pub put: Put,
}

/// How a row came to where it is.
#[derive(Clone, Debug)]
pub struct Put {
    /// The index of the commit.
    pub index: usize,
    /// The commit that scheduled the occurrence.
    pub scheduled: Scheduled,
    /// When, by the clock of the history.
    pub at_ms: u64,
    /// In which turn.
    pub turn: u64,
    /// By the process of this name.
    pub actor: Arc<str>,
    /// In this epoch.
    pub epoch: u64,
    /// The earliest due that a user has given the occurrence, if earlier than the one asked for: it
    /// was made to fire now.
    pub hurried_to_ms: u64,
}

/// Who scheduled an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The index of the commit.
    pub index: usize,
    /// The process, which drew its generation.
    pub actor: Arc<str>,
    /// Its epoch.
    pub epoch: u64,
}

impl Put {
    pub(super) fn of(index: usize, event: &Event, turn: u64, epoch: u64) -> Self {
        Self {
            index,
            scheduled: Scheduled {
                index,
                actor: Arc::clone(&event.actor),
                epoch,
            },
            at_ms: event.at_ms,
            turn,
            actor: Arc::clone(&event.actor),
            epoch,
            hurried_to_ms: u64::MAX,
        }
    }
}

impl Place {
    /// Reads a row; `None` if it is none of a timer, or its key does not decode.
    pub fn read(key: &Bytes, value: &Bytes, put: &Put) -> Option<Self> {
        if let Ok(timer) = TimerKey::decode(key) {
            let (header, payload) = match TimerRow::decode(value) {
                Ok(row) => (Some(row.header), row.payload),
                Err(_) => (None, value.clone()),
            };
            return Some(Self {
                occurrence: occurrence_of_timer(timer.clone()),
                key: key.clone(),
                at_ms: timer.due_ms,
                dead: None,
                header,
                payload,
                put: put.clone(),
            });
        }
        let dead = DeadKey::decode(key).ok()?;
        let row = DeadRow::decode(value).ok()?;
        Some(Self {
            occurrence: Occurrence {
                kind: dead.kind.0,
                reference: Octets(dead.reference),
                generation: dead.generation,
            },
            key: key.clone(),
            at_ms: dead.dead_at_ms,
            dead: Some(row.reason),
            header: Some(row.header),
            payload: row.payload,
            put: put.clone(),
        })
    }

    /// The due as it was asked for, or as the key says if the header does not decode.
    pub fn due_ms(&self) -> u64 {
        self.header
            .as_ref()
            .map_or(self.at_ms, |header| header.original_due_ms)
    }

    /// Before this time it must not take effect: its due, or the time to which a user has hurried it.
    pub fn may_fire_at_ms(&self) -> u64 {
        self.due_ms().min(self.put.hurried_to_ms)
    }

    /// Whether a run of it is claimed.
    pub fn is_claimed(&self) -> bool {
        self.header
            .as_ref()
            .is_some_and(|header| header.flags.claimed)
    }

    /// Whether it has a name.
    pub fn is_named(&self) -> bool {
        self.header
            .as_ref()
            .is_some_and(|header| header.flags.named)
    }

    /// Failed or claimed runs so far.
    pub fn attempt(&self) -> u16 {
        self.header.as_ref().map_or(0, |header| header.attempt)
    }

    /// The name row that belongs to it.
    pub fn name_row(&self) -> Option<NameRow> {
        let header = self.header.as_ref().filter(|header| header.flags.named)?;
        if let Ok(key) = TimerKey::decode(&self.key) {
            return Some(NameRow::of(&key, header));
        }
        Some(NameRow::of_dead(&DeadKey::decode(&self.key).ok()?))
    }

    /// Whether both are the same row with the same bytes.
    pub(super) fn is_same_row(&self, other: &Self) -> bool {
        self.key == other.key
            && self.dead == other.dead
            && self.header == other.header
            && self.payload == other.payload
    }
}

impl fmt::Debug for Place {
    /// As a person wants to read it who looks for what went wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.occurrence;
        let (kind, reference, generation) = (of.kind, &of.reference, of.generation);
        write!(f, "[kind {kind}, {reference}, generation {generation}")?;
        match self.dead {
            Some(reason) => write!(f, ", dead ({reason:?}) at {}", self.at_ms)?,
            None => write!(f, ", at {}", self.at_ms)?,
        }
        match &self.header {
            None => write!(f, ", no header")?,
            Some(header) => {
                write!(f, ", asked for {}", header.original_due_ms)?;
                write!(f, ", attempt {}", header.attempt)?;
                for (is_set, name) in [
                    (header.flags.named, "named"),
                    (header.flags.claimed, "claimed"),
                    (header.flags.recurring, "recurring"),
                ] {
                    if is_set {
                        write!(f, ", {name}")?;
                    }
                }
                if let Some(failure) = &header.failure {
                    write!(f, ", failed at {}: {:?}", failure.at_ms, failure.error)?;
                }
            }
        }
        let (actor, index) = (&self.put.actor, self.put.index);
        write!(f, "; put by {actor} at event {index}]")
    }
}

/// The occurrence that a key of the timer class names.
pub(super) fn occurrence_of_timer(key: TimerKey) -> Occurrence {
    Occurrence {
        kind: key.kind.0,
        reference: Octets(key.reference),
        generation: key.generation,
    }
}

/// The occurrence that a key of a timer or a dead timer names.
pub(super) fn occurrence_of(key: &Bytes) -> Option<Occurrence> {
    if let Ok(timer) = TimerKey::decode(key) {
        return Some(occurrence_of_timer(timer));
    }
    let dead = DeadKey::decode(key).ok()?;
    Some(Occurrence {
        kind: dead.kind.0,
        reference: Octets(dead.reference),
        generation: dead.generation,
    })
}

/// What a commit did to an occurrence.
#[derive(Clone, Debug)]
pub enum Change {
    /// It came to be.
    New {
        /// Where.
        to: Arc<Place>,
    },
    /// It is no more.
    Gone {
        /// Where it lay.
        from: Arc<Place>,
    },
    /// It lies elsewhere, or its row has other bytes.
    Moved {
        /// Where it lay.
        from: Arc<Place>,
        /// Where it lies.
        to: Arc<Place>,
    },
    /// It has two rows now.
    Twice {
        /// Which.
        occurrence: Occurrence,
    },
}

impl Change {
    /// Where the occurrence lay before, if it did.
    pub fn from(&self) -> Option<&Place> {
        match self {
            Self::Gone { from } | Self::Moved { from, .. } => Some(from),
            Self::New { .. } | Self::Twice { .. } => None,
        }
    }

    /// Where it lies now, if it does.
    pub fn to(&self) -> Option<&Place> {
        match self {
            Self::New { to } | Self::Moved { to, .. } => Some(to),
            Self::Gone { .. } | Self::Twice { .. } => None,
        }
    }
}

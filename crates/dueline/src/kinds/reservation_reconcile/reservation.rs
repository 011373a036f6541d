use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;

use super::rows::{ReservationRow, Stage};
use super::{RESERVATION_DETAIL_BYTES_MAX, RESERVATION_ID_BYTES_MAX, RESERVATION_REASON_BYTES_MAX};
use crate::kinds::outcome_delivery::OutboxName;
use crate::store::StoreError;

/// The caller's identity of a reservation, 1 to 96 bytes; unique in its partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(Bytes);

impl ReservationId {
    /// An id.
    ///
    /// # Errors
    /// `Invalid` for an empty one or one over 96 bytes.
    pub fn new(id: impl Into<Bytes>) -> Result<Self, StoreError> {
        let id = id.into();
        if id.is_empty() || id.len() > RESERVATION_ID_BYTES_MAX {
            return Err(StoreError::invalid(format!(
                "the id of a reservation has 1 to {RESERVATION_ID_BYTES_MAX} bytes, this one has {}",
                id.len()
            )));
        }
        Ok(Self(id))
    }

    /// The bytes of the id.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

/// For how long something is reserved, and what becomes of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Terms {
    pub(super) commit_within_ms: u64,
    pub(super) skew_ms: u64,
    pub(super) keep_ms: Option<u64>,
    pub(super) outbox: Option<OutboxName>,
    pub(super) detail: Bytes,
}

impl Terms {
    /// To be committed within this many milliseconds from now. The row stays until it is forgotten,
    /// nobody is told of the end, and there is no detail.
    pub fn commit_within_ms(commit_within_ms: u64) -> Self {
        Self {
            commit_within_ms,
            skew_ms: 1_000,
            keep_ms: None,
            outbox: None,
            detail: Bytes::new(),
        }
    }

    /// How long behind the latest commit it is abandoned, in milliseconds: how far the clocks of all who
    /// may commit are apart at most. Default: 1 s.
    pub fn skew_ms(mut self, skew_ms: u64) -> Self {
        self.skew_ms = skew_ms;
        self
    }

    /// Keeps the row for this many milliseconds behind the end, then its timer removes it. 0 removes it
    /// with the end itself.
    pub fn kept_for_ms(mut self, keep_ms: u64) -> Self {
        self.keep_ms = Some(keep_ms);
        self
    }

    /// Tells this outbox of the end, in the batch that writes it.
    pub fn outbox(mut self, outbox: OutboxName) -> Self {
        self.outbox = Some(outbox);
        self
    }

    /// Bytes of the caller's that are kept with it, at most 32 KiB.
    pub fn detail(mut self, detail: impl Into<Bytes>) -> Self {
        self.detail = detail.into();
        self
    }
}

/// How a reservation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// It waits to be committed or aborted.
    Pending,
    /// It has ended, for good.
    Ended {
        /// In which way.
        end: End,
        /// When, in milliseconds since 1970.
        ended_at_ms: u64,
    },
}

/// The ways in which a reservation ends; each in exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was committed in time.
    Committed,
    /// It was aborted, for this reason of at most 255 bytes.
    Aborted(String),
    /// Nobody had settled it by its deadline.
    Abandoned,
}

impl End {
    /// `committed`, `aborted` or `abandoned`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted(_) => "aborted",
            Self::Abandoned => "abandoned",
        }
    }

    pub(super) fn stage(&self) -> Stage {
        match self {
            Self::Committed => Stage::Committed,
            Self::Aborted(_) => Stage::Aborted,
            Self::Abandoned => Stage::Abandoned,
        }
    }
}

/// A reservation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The caller's identity of it.
    pub id: ReservationId,
    /// Tells it from an earlier one of the same id: whoever settles it names both.
    pub serial: u64,
    /// How it stands.
    pub state: ReservationState,
    /// When it was made, in milliseconds since 1970.
    pub reserved_at_ms: u64,
    /// The latest commit, by the store's clock, in milliseconds since 1970.
    pub commit_by_ms: u64,
    /// When it is abandoned, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// When its row goes by itself, in milliseconds since 1970; `None` while it is pending and if it stays
    /// until it is forgotten.
    pub kept_until_ms: Option<u64>,
    /// The caller's bytes.
    pub detail: Bytes,
}

impl Reservation {
    pub(super) fn of(id: &ReservationId, row: &ReservationRow) -> Self {
        let ended = |end| ReservationState::Ended {
            end,
            ended_at_ms: row.ended_at_ms,
        };
        let state = match row.stage {
            Stage::Pending => ReservationState::Pending,
            Stage::Committed => ended(End::Committed),
            Stage::Aborted => ended(End::Aborted(
                String::from_utf8_lossy(&row.reason).into_owned(),
            )),
            Stage::Abandoned => ended(End::Abandoned),
        };
        Self {
            id: id.clone(),
            serial: row.serial,
            kept_until_ms: match row.stage {
                Stage::Pending => None,
                Stage::Committed | Stage::Aborted | Stage::Abandoned => row.kept_until_ms(),
            },
            state,
            reserved_at_ms: row.reserved_at_ms,
            commit_by_ms: row.commit_by_ms,
            deadline_ms: row.deadline_ms,
            detail: row.detail.clone(),
        }
    }

    /// Whether it waits to be settled.
    pub fn is_pending(&self) -> bool {
        self.state == ReservationState::Pending
    }

    /// How it ended, if it has.
    pub fn end(&self) -> Option<&End> {
        match &self.state {
            ReservationState::Pending => None,
            ReservationState::Ended { end, .. } => Some(end),
        }
    }

    /// The message that an outbox is sent unless the caller writes its own: a JSON object with
    /// `reservation`, `serial`, `end`, `reason` (of an abort), `ended_at_ms` and `detail`. Id and detail
    /// are text; bytes that are not UTF-8 are replaced by U+FFFD.
    pub fn to_json(&self) -> Bytes {
        let (end, ended_at_ms) = match &self.state {
            ReservationState::Ended { end, ended_at_ms } => (Some(end), Some(*ended_at_ms)),
            ReservationState::Pending => (None, None),
        };
        let message = Message {
            detail: Some(String::from_utf8_lossy(&self.detail)).filter(|text| !text.is_empty()),
            end: end.map(End::name),
            ended_at_ms,
            reason: end.and_then(|end| match end {
                End::Aborted(reason) => Some(reason.as_str()),
                End::Committed | End::Abandoned => None,
            }),
            reservation: String::from_utf8_lossy(self.id.as_bytes()),
            serial: self.serial.to_string(),
        };
        // Texts and a number always have a JSON form.
        serde_json::to_vec(&message).map_or_else(|_| Bytes::new(), Bytes::from)
    }

    /// The id of the outcome that tells of the end: the same however often it is delivered, another for
    /// a later reservation of the same id.
    pub(super) fn outcome_id(&self) -> Bytes {
        let serial = format!(".{:016x}", self.serial);
        Bytes::from([self.id.as_bytes().as_ref(), serial.as_bytes()].concat())
    }
}

/// What an outbox is told, its fields in the order of their names.
#[derive(Serialize)]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    reservation: Cow<'a, str>,
    serial: String,
}

pub(super) fn validate_detail(detail: &Bytes) -> Result<(), StoreError> {
    within("detail", detail.len(), RESERVATION_DETAIL_BYTES_MAX)
}

pub(super) fn validate_end(end: &End) -> Result<(), StoreError> {
    match end {
        End::Aborted(reason) => within("reason", reason.len(), RESERVATION_REASON_BYTES_MAX),
        End::Committed | End::Abandoned => Ok(()),
    }
}

fn within(what: &str, len: usize, most: usize) -> Result<(), StoreError> {
    if len > most {
        return Err(StoreError::invalid(format!(
            "the {what} of a reservation has at most {most} bytes, this one has {len}"
        )));
    }
    Ok(())
}

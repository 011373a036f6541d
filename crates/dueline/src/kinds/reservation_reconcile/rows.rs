use bytes::{BufMut, Bytes};

use super::RESERVATION_RECONCILE;
use super::reservation::ReservationId;
use crate::kinds::fuzzing::Form;
use crate::kinds::outcome_delivery::OUTBOX_NAME_BYTES_MAX;
use crate::kinds::row::{Row, Table};
use crate::limits::DUE_MS_MAX;
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::Key;

/// A reservation: `62 00 09 72`, then its id.
const RESERVATION: Table = Table::new(RESERVATION_RECONCILE, b'r');

/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] = &[
    Form::row::<ReservationRow>(RESERVATION),
    Form::payload::<TimerPayload>(RESERVATION_RECONCILE),
];

/// The retention of a row that stays until it is forgotten.
const FOR_EVER: u64 = u64::MAX;

/// Where a reservation stands; the byte of the row. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Pending = 1,
    Committed = 2,
    Aborted = 3,
    Abandoned = 4,
}

impl Stage {
    /// The table of states: everything begins as pending, and what has ended stays as it is.
    pub(super) fn may_become(self, next: Self) -> bool {
        self == Self::Pending && next != Self::Pending
    }

    fn decode(byte: u8) -> Result<Self, Malformed> {
        let all = [
            Self::Pending,
            Self::Committed,
            Self::Aborted,
            Self::Abandoned,
        ];
        all.into_iter()
            .find(|stage| *stage as u8 == byte)
            .ok_or(Malformed("unknown stage"))
    }
}

/// A reservation, `version:u8 stage:u8 serial:u64 reserved_at_ms:u64 commit_by_ms:u64 deadline_ms:u64
/// ended_at_ms:u64 keep_ms:u64 outbox_len:u8 outbox reason_len:u8 reason detail`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReservationRow {
    pub(super) stage: Stage,
    /// Tells this reservation from an earlier one of the same id, and its timer from others.
    pub(super) serial: u64,
    pub(super) reserved_at_ms: u64,
    pub(super) commit_by_ms: u64,
    pub(super) deadline_ms: u64,
    /// 0 while it is pending.
    pub(super) ended_at_ms: u64,
    /// How long the row stays behind its end; `None` until it is forgotten.
    pub(super) keep_ms: Option<u64>,
    /// The outbox that is told of the end; empty for none.
    pub(super) outbox: Bytes,
    /// Why it was aborted; empty otherwise.
    pub(super) reason: Bytes,
    pub(super) detail: Bytes,
}

impl ReservationRow {
    pub(super) fn key(id: &ReservationId) -> Key {
        RESERVATION.key(&[id.as_bytes()])
    }

    /// When the row goes by itself, in milliseconds since 1970; only of one that has ended.
    pub(super) fn kept_until_ms(&self) -> Option<u64> {
        self.keep_ms
            .map(|keep_ms| self.ended_at_ms.saturating_add(keep_ms).min(DUE_MS_MAX))
    }
}

impl Row for ReservationRow {
    const WHAT: &'static str = "a reservation";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u8(self.stage as u8);
        out.put_u64(self.serial);
        out.put_u64(self.reserved_at_ms);
        out.put_u64(self.commit_by_ms);
        out.put_u64(self.deadline_ms);
        out.put_u64(self.ended_at_ms);
        out.put_u64(self.keep_ms.unwrap_or(FOR_EVER));
        for short in [&self.outbox, &self.reason] {
            out.put_u8(u8::try_from(short.len()).unwrap_or(u8::MAX));
            out.put_slice(short);
        }
        out.put_slice(&self.detail);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let stage = Stage::decode(reader.u8()?)?;
        let serial = reader.u64()?;
        let reserved_at_ms = reader.u64()?;
        let commit_by_ms = reader.u64()?;
        let deadline_ms = reader.u64()?;
        let ended_at_ms = reader.u64()?;
        let keep_ms = Some(reader.u64()?).filter(|keep_ms| *keep_ms != FOR_EVER);
        let outbox_len = usize::from(reader.u8()?);
        if outbox_len > OUTBOX_NAME_BYTES_MAX {
            return Err(Malformed("the name of an outbox is too long"));
        }
        let outbox = reader.bytes(outbox_len)?;
        let reason_len = usize::from(reader.u8()?);
        let reason = reader.bytes(reason_len)?;
        Ok(Self {
            stage,
            serial,
            reserved_at_ms,
            commit_by_ms,
            deadline_ms,
            ended_at_ms,
            keep_ms,
            outbox,
            reason,
            detail: reader.rest(),
        })
    }
}

/// The payload of a reservation's timer, `version:u8 serial:u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerPayload {
    pub(super) serial: u64,
}

impl Row for TimerPayload {
    const WHAT: &'static str = "the payload of a reservation's timer";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.serial);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let serial = reader.u64()?;
        reader.end()?;
        Ok(Self { serial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_that_no_outbox_is_called_is_refused() {
        let of = |outbox| ReservationRow {
            stage: Stage::Pending,
            serial: 1,
            reserved_at_ms: 2,
            commit_by_ms: 3,
            deadline_ms: 4,
            ended_at_ms: 0,
            keep_ms: None,
            outbox,
            reason: Bytes::new(),
            detail: Bytes::new(),
        };
        let longest = of(Bytes::from(vec![b'o'; OUTBOX_NAME_BYTES_MAX]));
        assert_eq!(ReservationRow::decode(&longest.encode()), Ok(longest));
        let longer = of(Bytes::from(vec![b'o'; OUTBOX_NAME_BYTES_MAX + 1]));
        assert!(ReservationRow::decode(&longer.encode()).is_err());
    }
}

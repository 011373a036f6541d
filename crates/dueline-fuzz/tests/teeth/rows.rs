//! Readers of rows that read what they must refuse, or read it wrongly.

use bytes::Bytes;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, KindNameKey, LaneHead, Malformed, NameKey, NameRow,
    PauseKey, PauseRow, QuarantineKey, TimerKey, TimerRow, lane_head,
};
use dueline::store::{Key, Value};
use dueline_fuzz::{KeyReaders, ValueReaders, row_keys_read_by, row_values_read_by};

const INPUTS_MAX: usize = 20_000;

/// The beginning of some bytes.
fn first(bytes: &Bytes, count: usize) -> Bytes {
    bytes.slice(..bytes.len().min(count))
}

/// Bytes with one of them changed.
fn changed(bytes: &Bytes, place: usize, change: impl Fn(u8) -> u8) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(byte) = bytes.get_mut(place) {
        *byte = change(*byte);
    }
    Bytes::from(bytes)
}

fn of_kind_0(key: &Key) -> Result<TimerKey, Malformed> {
    TimerKey::decode(&changed(key, 2, |kind| kind.max(1)))
}

fn without_its_last_bit(key: &Key) -> Result<DeadKey, Malformed> {
    DeadKey::decode(&changed(key, 18, |byte| byte & 0xfe))
}

fn not_utf8(key: &Key) -> Result<KindNameKey, Malformed> {
    let text = String::from_utf8_lossy(key).into_owned();
    KindNameKey::decode(&Key::from(text))
}

fn filled_from_the_left(key: &[u8]) -> Option<LaneHead> {
    let mut head = lane_head(key)?;
    let missing = 11_usize.saturating_sub(key.len()).min(7);
    head.due_ms >>= 8 * missing;
    Some(head)
}

#[test]
fn a_key_that_is_read_wrongly_is_found() {
    const SOUND: KeyReaders = KeyReaders::SOUND;
    let faults: [(&str, KeyReaders); 7] = [
        (
            "a timer of kind 0 is read",
            KeyReaders {
                timer: of_kind_0,
                ..SOUND
            },
        ),
        (
            "a bit of a dead timer's generation is lost",
            KeyReaders {
                dead: without_its_last_bit,
                ..SOUND
            },
        ),
        (
            "a pause of any length is read",
            KeyReaders {
                pause: |key| PauseKey::decode(&first(key, 3)),
                ..SOUND
            },
        ),
        (
            "a long name is cut",
            KeyReaders {
                name: |key| NameKey::decode(&first(key, 40)),
                ..SOUND
            },
        ),
        (
            "the name of a kind need not be UTF-8",
            KeyReaders {
                kind_name: not_utf8,
                ..SOUND
            },
        ),
        (
            "a row set aside loses its last byte",
            KeyReaders {
                quarantine: |key| QuarantineKey::decode(&first(key, key.len().max(4) - 1)),
                ..SOUND
            },
        ),
        (
            "a short key is filled from the wrong side",
            KeyReaders {
                lane_head: filled_from_the_left,
                ..SOUND
            },
        ),
    ];
    for (fault, readers) in faults {
        super::is_found(fault, "row_keys", INPUTS_MAX, |input| {
            row_keys_read_by(input, &readers);
        });
    }
}

#[test]
fn a_value_that_is_read_wrongly_is_found() {
    const SOUND: ValueReaders = ValueReaders::SOUND;
    fn with_unknown_flags(value: &Value) -> Result<TimerRow, Malformed> {
        TimerRow::decode(&changed(value, 1, |flags| flags & 0x0f))
    }
    fn of_an_unknown_reason(value: &Value) -> Result<DeadRow, Malformed> {
        let mut row = DeadRow::decode(value)?;
        if row.reason == DeadReason::UndecodableHeader {
            row.reason = DeadReason::UndecodablePayload;
        }
        Ok(row)
    }
    fn cut_anywhere(at_ms: u64, error: &str) -> Failure {
        let end = error.len().min(255);
        let error = String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned();
        Failure { at_ms, error }
    }
    let faults: [(&str, ValueReaders); 6] = [
        (
            "flags of a later version are read",
            ValueReaders {
                timer: with_unknown_flags,
                ..SOUND
            },
        ),
        (
            "a reason is taken for another",
            ValueReaders {
                dead: of_an_unknown_reason,
                ..SOUND
            },
        ),
        (
            "a name of any length is read",
            ValueReaders {
                name: |value| NameRow::decode(&first(value, 17)),
                ..SOUND
            },
        ),
        (
            "a pause of any length is read",
            ValueReaders {
                pause: |value| PauseRow::decode(&first(value, 8)),
                ..SOUND
            },
        ),
        (
            "the payload of a timer is cut",
            ValueReaders {
                timer: |value| TimerRow::decode(&first(value, 60)),
                ..SOUND
            },
        ),
        (
            "an error is cut within a character",
            ValueReaders {
                failure: cut_anywhere,
                ..SOUND
            },
        ),
    ];
    for (fault, readers) in faults {
        super::is_found(fault, "row_values", INPUTS_MAX, |input| {
            row_values_read_by(input, &readers);
        });
    }
}

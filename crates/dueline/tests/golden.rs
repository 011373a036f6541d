//! Goal: bytes written by any release are read by every later one. Method: each file of `golden/v1` holds a
//! row as it was written once; it must decode to the row named here and encode to the same bytes again, and
//! FORMAT.md must show it. A golden file is never edited: a new format gets a folder of its own.
#![cfg(test)]

use bytes::Bytes;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, Flags, Header, KindNameKey, KindNameRow, NEXT_KIND_KEY,
    NameKey, NameRow, NameState, PauseKey, PauseRow, QuarantineKey, TimerKey, TimerRow,
};
use dueline::timers::TimerKind;

const FORMAT: &str = include_str!("../../../FORMAT.md");
const KIND: TimerKind = TimerKind(16);
const DUE_MS: u64 = 1_800_000_000_000;
const GENERATION: u64 = (1_799_999_000_000 << 20) | 7;

/// A row as a golden file has it.
struct Golden {
    key: Bytes,
    value: Bytes,
}

/// Reads a golden file: lines `key ...` and `value ...` in hexadecimal with spaces between the fields.
fn golden(text: &str) -> Golden {
    let field = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line of the row");
        assert!(
            FORMAT.contains(&format!("{name}{line}")),
            "FORMAT.md does not show `{name}{line}`"
        );
        let digits: String = line.split_whitespace().collect();
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits"));
        Bytes::from_iter(bytes)
    };
    Golden {
        key: field("key "),
        value: field("value "),
    }
}

fn reference() -> Bytes {
    Bytes::from_static(b"order-42")
}

fn payload() -> Bytes {
    Bytes::from_static(br#"{"order":42}"#)
}

fn failed_header() -> Header {
    Header {
        flags: Flags {
            named: true,
            claimed: false,
            recurring: false,
        },
        attempt: 3,
        original_due_ms: DUE_MS,
        failure: Some(Failure::new(DUE_MS + 15_500, "connection refused")),
    }
}

#[test]
fn a_pending_timer() {
    let golden = golden(include_str!("golden/v1/timer_pending.hex"));
    let key = TimerKey {
        kind: KIND,
        due_ms: DUE_MS,
        generation: GENERATION,
        reference: reference(),
    };
    let flags = Flags {
        named: true,
        ..Flags::default()
    };
    let header = Header {
        flags,
        original_due_ms: DUE_MS,
        ..Header::default()
    };
    let row = TimerRow {
        header,
        payload: payload(),
    };
    assert_eq!(
        (key.encode(), row.encode()),
        (golden.key.clone(), golden.value.clone())
    );
    assert_eq!(
        (
            TimerKey::decode(&golden.key),
            TimerRow::decode(&golden.value)
        ),
        (Ok(key), Ok(row))
    );
}

#[test]
fn a_timer_that_failed_and_waits_for_its_next_attempt() {
    let golden = golden(include_str!("golden/v1/timer_retrying.hex"));
    let due_ms = DUE_MS + 36_000;
    let key = TimerKey {
        kind: KIND,
        due_ms,
        generation: GENERATION,
        reference: reference(),
    };
    let row = TimerRow {
        header: failed_header(),
        payload: payload(),
    };
    assert_eq!(
        (key.encode(), row.encode()),
        (golden.key.clone(), golden.value.clone())
    );
    assert_eq!(
        (
            TimerKey::decode(&golden.key),
            TimerRow::decode(&golden.value)
        ),
        (Ok(key), Ok(row))
    );
}

#[test]
fn an_anonymous_recurring_timer_that_is_claimed() {
    let golden = golden(include_str!("golden/v1/timer_claimed.hex"));
    let due_ms = DUE_MS + 40_000;
    let key = TimerKey {
        kind: KIND,
        due_ms,
        generation: GENERATION,
        reference: Bytes::new(),
    };
    let flags = Flags {
        named: false,
        claimed: true,
        recurring: true,
    };
    let header = Header {
        flags,
        attempt: 1,
        original_due_ms: DUE_MS,
        failure: None,
    };
    let row = TimerRow {
        header,
        payload: Bytes::new(),
    };
    assert_eq!(
        (key.encode(), row.encode()),
        (golden.key.clone(), golden.value.clone())
    );
    assert_eq!(
        (
            TimerKey::decode(&golden.key),
            TimerRow::decode(&golden.value)
        ),
        (Ok(key), Ok(row))
    );
}

#[test]
fn a_name_and_each_of_its_states() {
    let golden = golden(include_str!("golden/v1/name.hex"));
    let key = NameKey {
        kind: KIND,
        reference: reference(),
    };
    let row = NameRow {
        state: NameState::Pending,
        due_ms: DUE_MS,
        generation: GENERATION,
    };
    assert_eq!(
        (key.encode(), row.encode()),
        (golden.key.clone(), golden.value.clone())
    );
    assert_eq!(
        (NameKey::decode(&golden.key), NameRow::decode(&golden.value)),
        (Ok(key), Ok(row))
    );
    let states = [
        (1, NameState::Pending),
        (2, NameState::Retrying),
        (3, NameState::Claimed),
        (4, NameState::Dead),
    ];
    for (byte, state) in states {
        let mut bytes = golden.value.to_vec();
        bytes[0] = byte;
        assert_eq!(NameRow::decode(&bytes.into()), Ok(NameRow { state, ..row }));
    }
}

#[test]
fn a_dead_timer_and_each_reason() {
    let golden = golden(include_str!("golden/v1/dead.hex"));
    let dead_at_ms = DUE_MS + 15_500;
    let key = DeadKey {
        kind: KIND,
        dead_at_ms,
        generation: GENERATION,
        reference: reference(),
    };
    let row = DeadRow {
        header: failed_header(),
        reason: DeadReason::Exhausted,
        codec_version: 0,
        payload: payload(),
    };
    assert_eq!(
        (key.encode(), row.encode()),
        (golden.key.clone(), golden.value.clone())
    );
    assert_eq!(
        (DeadKey::decode(&golden.key), DeadRow::decode(&golden.value)),
        (Ok(key), Ok(row.clone()))
    );
    let reasons = [
        (1, DeadReason::Exhausted),
        (2, DeadReason::Handler),
        (3, DeadReason::UndecodablePayload),
        (4, DeadReason::UndecodableHeader),
    ];
    let reason_at = golden.value.len() - row.payload.len() - 3;
    for (byte, reason) in reasons {
        let mut bytes = golden.value.to_vec();
        bytes[reason_at] = byte;
        assert_eq!(
            DeadRow::decode(&bytes.into()),
            Ok(DeadRow {
                reason,
                ..row.clone()
            })
        );
    }
}

#[test]
fn a_paused_kind() {
    let golden = golden(include_str!("golden/v1/pause.hex"));
    let (key, row) = (PauseKey { kind: KIND }, PauseRow { since_ms: DUE_MS });
    assert_eq!(
        (key.encode(), row.encode()),
        (golden.key.clone(), golden.value.clone())
    );
    assert_eq!(
        (
            PauseKey::decode(&golden.key),
            PauseRow::decode(&golden.value)
        ),
        (Ok(key), Ok(row))
    );
}

#[test]
fn the_name_of_a_kind_and_the_next_kind_to_allot() {
    let named = golden(include_str!("golden/v1/kind_name.hex"));
    let (key, row) = (
        KindNameKey {
            name: "invoice".to_owned(),
        },
        KindNameRow { kind: KIND },
    );
    assert_eq!(
        (key.encode(), row.encode()),
        (named.key.clone(), named.value.clone())
    );
    assert_eq!(
        (
            KindNameKey::decode(&named.key),
            KindNameRow::decode(&named.value)
        ),
        (Ok(key), Ok(row))
    );
    let next = golden(include_str!("golden/v1/next_kind.hex"));
    assert_eq!(next.key, NEXT_KIND_KEY);
    assert_eq!(
        KindNameRow::decode(&next.value),
        Ok(KindNameRow {
            kind: TimerKind(17)
        })
    );
}

#[test]
fn a_row_that_was_set_aside() {
    let golden = golden(include_str!("golden/v1/quarantine.hex"));
    let malformed = Bytes::from_static(&[0x77, 0, 16, 0, 1]);
    let key = QuarantineKey::of(&malformed);
    assert_eq!(key.encode(), golden.key);
    assert_eq!(QuarantineKey::decode(&golden.key), Ok(key.clone()));
    assert_eq!(key.original(), malformed);
    assert_eq!(golden.value, Bytes::from_static(b"as found"));
}

//! Bytes that are fixed for good, and bytes that are refused.

use dueline::Bytes;
use dueline::rows::{
    DeadKey, DeadRow, Failure, Header, KindNameKey, NameKey, NameRow, PauseKey, TimerKey, TimerRow,
};
use dueline::timers::TimerKind;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_key_of_a_timer_of_kind_15_is_these_bytes_and_parses_back() {
    let key = TimerKey {
        kind: TimerKind(15),
        due_ms: 0x0102_0304_0506_0708,
        generation: 0x1112_1314_1516_1718,
        reference: Bytes::from_static(b"\xff\x00ref"),
    };
    let encoded = key.encode();
    assert_eq!(
        hex(&encoded),
        "77000f01020304050607081112131415161718ff00726566"
    );
    assert_eq!(TimerKey::decode(&encoded).unwrap(), key);
}

#[test]
fn the_value_of_a_failed_timer_is_these_bytes() {
    let row = TimerRow {
        header: Header {
            attempt: 3,
            original_due_ms: 0x0a0b,
            failure: Some(Failure::new(0x0c0d, "no")),
            ..Header::default()
        },
        payload: Bytes::from_static(b"p"),
    };
    let expected = concat!(
        "01",
        "04",
        "0003",
        "0000000000000a0b",
        "0000000000000c0d",
        "0002",
        "6e6f",
        "70"
    );
    assert_eq!(hex(&row.encode()), expected);
}

#[test]
fn keys_that_are_short_of_another_class_of_kind_0_or_too_long_are_refused() {
    let good = TimerKey {
        kind: TimerKind(16),
        due_ms: 1,
        generation: 2,
        reference: Bytes::new(),
    }
    .encode();
    for len in 0..good.len() {
        assert!(TimerKey::decode(&good.slice(..len)).is_err(), "{len} bytes");
        assert!(DeadKey::decode(&good.slice(..len)).is_err(), "{len} bytes");
    }
    assert!(DeadKey::decode(&good).is_err() && NameKey::decode(&good).is_err());
    let mut kind_0 = good.to_vec();
    kind_0[2] = 0;
    assert!(TimerKey::decode(&kind_0.into()).is_err());
    let longest = [&good[..], &[7; 512]].concat();
    assert!(TimerKey::decode(&longest.clone().into()).is_ok());
    assert!(TimerKey::decode(&[&longest[..], &[7]].concat().into()).is_err());
    assert!(NameKey::decode(&Bytes::from_static(b"n\0\0x")).is_err());
    assert!(PauseKey::decode(&Bytes::from_static(b"p\0\x10x")).is_err());
    assert!(KindNameKey::decode(&Bytes::from_static(b"k\0")).is_err());
    assert!(KindNameKey::decode(&Bytes::from_static(b"k\0\xff")).is_err());
}

#[test]
fn headers_of_another_version_with_unknown_flags_or_a_bad_error_are_refused() {
    let good = TimerRow {
        header: Header {
            failure: Some(Failure::new(1, "no")),
            ..Header::default()
        },
        payload: Bytes::new(),
    }
    .encode();
    assert!(TimerRow::decode(&good).is_ok());
    for len in 0..good.len() {
        assert!(TimerRow::decode(&good.slice(..len)).is_err(), "{len} bytes");
    }
    for (place, byte) in [(0, 0), (0, 2), (1, 0x14), (1, 0x84), (20, 1), (22, 0xff)] {
        let mut bad = good.to_vec();
        bad[place] = byte;
        assert!(
            TimerRow::decode(&bad.into()).is_err(),
            "byte {place} as {byte}"
        );
    }
    assert!(NameRow::decode(&Bytes::from(vec![5; 17])).is_err());
    assert!(NameRow::decode(&Bytes::from(vec![1; 18])).is_err());
    let mut dead = good.to_vec();
    dead.extend_from_slice(&[9, 0, 0]);
    assert!(DeadRow::decode(&dead.into()).is_err(), "an unknown reason");
}

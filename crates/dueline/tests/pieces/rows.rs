//! Every codec of a row: round trips, order, and bytes that nobody wrote.

use dueline::Bytes;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, Flags, Header, KindNameKey, KindNameRow, NameKey,
    NameRow, NameState, PauseKey, PauseRow, QuarantineKey, TimerKey, TimerRow, class, class_end,
    class_start, is_of_class, is_reserved, lane_head,
};
use dueline::timers::TimerKind;
use proptest::collection::vec;
use proptest::prelude::*;

fn kinds() -> impl Strategy<Value = TimerKind> {
    (1..=u8::MAX).prop_map(TimerKind)
}

fn references() -> impl Strategy<Value = Bytes> {
    prop_oneof![vec(any::<u8>(), 0..24), vec(any::<u8>(), 500..=512)].prop_map(Bytes::from)
}

/// Numbers with their ends, where an encoding goes wrong first.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        0..4u64,
        Just(1 << 32)
    ]
}

fn timer_keys() -> impl Strategy<Value = TimerKey> {
    (kinds(), numbers(), numbers(), references()).prop_map(
        |(kind, due_ms, generation, reference)| TimerKey {
            kind,
            due_ms,
            generation,
            reference,
        },
    )
}

fn dead_keys() -> impl Strategy<Value = DeadKey> {
    timer_keys().prop_map(|key| DeadKey {
        kind: key.kind,
        dead_at_ms: key.due_ms,
        generation: key.generation,
        reference: key.reference,
    })
}

fn headers() -> impl Strategy<Value = Header> {
    let flags = any::<[bool; 3]>().prop_map(|[named, claimed, recurring]| Flags {
        named,
        claimed,
        recurring,
    });
    let failures = (numbers(), "\\PC{0,400}").prop_map(|(at_ms, text)| Failure::new(at_ms, &text));
    (
        flags,
        any::<u16>(),
        numbers(),
        proptest::option::of(failures),
    )
        .prop_map(|(flags, attempt, original_due_ms, failure)| Header {
            flags,
            attempt,
            original_due_ms,
            failure,
        })
}

fn payloads() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn reasons() -> impl Strategy<Value = DeadReason> {
    prop_oneof![
        Just(DeadReason::Exhausted),
        Just(DeadReason::Handler),
        Just(DeadReason::UndecodablePayload),
        Just(DeadReason::UndecodableHeader),
    ]
}

fn name_rows() -> impl Strategy<Value = NameRow> {
    let states = prop_oneof![
        Just(NameState::Pending),
        Just(NameState::Retrying),
        Just(NameState::Claimed),
        Just(NameState::Dead),
    ];
    (states, numbers(), numbers()).prop_map(|(state, due_ms, generation)| NameRow {
        state,
        due_ms,
        generation,
    })
}

proptest! {
    #[test]
    fn keys_come_back_as_they_were_written(
        timer in timer_keys(),
        dead in dead_keys(),
        kind in kinds(),
        reference in references(),
    ) {
        prop_assert_eq!(TimerKey::decode(&timer.encode()).unwrap(), timer.clone());
        prop_assert_eq!(DeadKey::decode(&dead.encode()).unwrap(), dead.clone());
        let name = NameKey { kind, reference };
        prop_assert_eq!(NameKey::decode(&name.encode()).unwrap(), name.clone());
        let pause = PauseKey { kind };
        prop_assert_eq!(PauseKey::decode(&pause.encode()).unwrap(), pause);
        for key in [timer.encode(), dead.encode(), name.encode(), pause.encode()] {
            prop_assert!(is_reserved(&key) && key.len() <= dueline::limits::KEY_BYTES_MAX);
        }
    }

    #[test]
    fn values_come_back_as_they_were_written(
        header in headers(),
        payload in payloads(),
        reason in reasons(),
        codec_version in any::<u16>(),
        name in name_rows(),
        since_ms in numbers(),
        kind in kinds(),
    ) {
        let timer = TimerRow { header: header.clone(), payload: payload.clone() };
        prop_assert_eq!(TimerRow::decode(&timer.encode()).unwrap(), timer);
        let dead = DeadRow { header, reason, codec_version, payload };
        prop_assert_eq!(DeadRow::decode(&dead.encode()).unwrap(), dead);
        prop_assert_eq!(NameRow::decode(&name.encode()).unwrap(), name);
        let pause = PauseRow { since_ms };
        prop_assert_eq!(PauseRow::decode(&pause.encode()).unwrap(), pause);
        let row = KindNameRow { kind };
        prop_assert_eq!(KindNameRow::decode(&row.encode()).unwrap(), row);
    }

    #[test]
    fn names_of_kinds_come_back_as_they_were_written(name in "\\PC{1,32}") {
        let key = KindNameKey { name };
        prop_assert_eq!(KindNameKey::decode(&key.encode()).unwrap(), key);
    }

    #[test]
    fn timer_keys_order_as_kind_due_generation_reference(a in timer_keys(), b in timer_keys()) {
        let tuple = |key: &TimerKey| (key.kind, key.due_ms, key.generation, key.reference.clone());
        prop_assert_eq!(a.encode().cmp(&b.encode()), tuple(&a).cmp(&tuple(&b)));
    }

    #[test]
    fn dead_keys_order_as_kind_death_generation_reference(a in dead_keys(), b in dead_keys()) {
        let tuple =
            |key: &DeadKey| (key.kind, key.dead_at_ms, key.generation, key.reference.clone());
        prop_assert_eq!(a.encode().cmp(&b.encode()), tuple(&a).cmp(&tuple(&b)));
        prop_assert!(DeadKey::lane_start(a.kind) <= a.encode());
        prop_assert!(a.encode() < DeadKey::lane_end(a.kind));
    }

    #[test]
    fn a_lane_holds_its_keys_and_its_due_range_those_that_are_due(
        key in timer_keys(),
        now_ms in numbers(),
        other in kinds(),
    ) {
        let encoded = key.encode();
        let in_lane = |kind| {
            encoded >= TimerKey::lane_start(kind) && encoded < TimerKey::lane_end(kind)
        };
        prop_assert!(in_lane(key.kind));
        prop_assert_eq!(in_lane(other), other == key.kind);
        let due = encoded < TimerKey::lane_due_end(key.kind, now_ms);
        prop_assert_eq!(due, key.due_ms <= now_ms);
        let head = lane_head(&encoded).unwrap();
        prop_assert_eq!((head.kind, head.due_ms), (key.kind, key.due_ms));
    }

    #[test]
    fn random_bytes_never_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..64)) {
        decode_all(&Bytes::from(bytes));
    }

    /// Bytes that begin as a row does get further into a decoder than random ones.
    #[test]
    fn damaged_rows_never_make_a_decoder_panic(
        key in timer_keys(),
        header in headers(),
        payload in payloads(),
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        flip in any::<u8>(),
        letter in prop::sample::select(vec![b'w', b'n', b'd', b'p', b'k', b'q']),
    ) {
        let mut damaged = key.encode().to_vec();
        damaged[0] = letter;
        let row = TimerRow { header: header.clone(), payload: payload.clone() }.encode();
        let dead = DeadRow { header, reason: DeadReason::Handler, codec_version: 1, payload };
        for mut bytes in [damaged, row.to_vec(), dead.encode().to_vec()] {
            let place = at.index(bytes.len());
            bytes[place] ^= flip;
            decode_all(&Bytes::from(bytes.clone()));
            bytes.truncate(cut.index(bytes.len()));
            decode_all(&Bytes::from(bytes));
        }
    }

    #[test]
    fn a_malformed_key_is_found_again_behind_its_quarantine(rest in vec(any::<u8>(), 0..64)) {
        let malformed = Bytes::from([&b"w\0"[..], &rest].concat());
        let aside = QuarantineKey::of(&malformed).encode();
        prop_assert!(is_of_class(&aside, class::QUARANTINE));
        prop_assert_eq!(QuarantineKey::decode(&aside).unwrap().original(), malformed);
    }

    /// Every key of the timer class has a lane and a due, malformed or not, and lies in that lane.
    #[test]
    fn every_key_of_the_timer_class_lies_in_the_lane_its_head_names(
        rest in vec(any::<u8>(), 0..24),
    ) {
        let key = Bytes::from([&b"w\0"[..], &rest].concat());
        let head = lane_head(&key).unwrap();
        prop_assert!(key >= TimerKey::lane_start(head.kind));
        prop_assert!(key < TimerKey::lane_end(head.kind));
        prop_assert!(key < TimerKey::lane_due_end(head.kind, head.due_ms));
        prop_assert!(key >= class_start(class::TIMER) && key < class_end(class::TIMER));
    }
}

fn decode_all(bytes: &Bytes) {
    let _ = TimerKey::decode(bytes).is_ok();
    let _ = DeadKey::decode(bytes).is_ok();
    let _ = NameKey::decode(bytes).is_ok();
    let _ = PauseKey::decode(bytes).is_ok();
    let _ = KindNameKey::decode(bytes).is_ok();
    let _ = QuarantineKey::decode(bytes).is_ok();
    let _ = TimerRow::decode(bytes).is_ok();
    let _ = DeadRow::decode(bytes).is_ok();
    let _ = NameRow::decode(bytes).is_ok();
    let _ = PauseRow::decode(bytes).is_ok();
    let _ = KindNameRow::decode(bytes).is_ok();
    let _ = lane_head(bytes);
}

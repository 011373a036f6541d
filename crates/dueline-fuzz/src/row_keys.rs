use bytes::Bytes;
use dueline::rows::{
    DeadKey, KindNameKey, NameKey, PauseKey, QuarantineKey, TimerKey, class, class_end,
    class_start, is_of_class, is_reserved, lane_head,
};
use dueline::store::Key;

/// Two keys, the first as long as the first byte says: what decodes encodes to the same bytes, lies in
/// its class and lane, and orders as its fields do.
///
/// # Panics
/// If it does not.
pub fn row_keys(data: &[u8]) {
    let Some((length, rest)) = data.split_first() else {
        return;
    };
    let (first, second) = rest.split_at(usize::from(*length).min(rest.len()));
    let first = Bytes::copy_from_slice(first);
    let second = Bytes::copy_from_slice(second);
    one(&first);
    one(&second);
    timers_order_as_their_fields(&first, &second);
    dead_order_as_their_fields(&first, &second);
}

fn one(key: &Key) {
    timer(key);
    let same = |encoded: Option<Key>, of: u8| {
        if let Some(encoded) = encoded {
            assert_eq!(encoded, key);
            assert!(is_of_class(key, of) && is_reserved(key));
            assert!(class_start(of) <= *key && *key < class_end(of));
        }
    };
    if let Ok(dead) = DeadKey::decode(key) {
        assert!(DeadKey::lane_start(dead.kind) <= *key && *key < DeadKey::lane_end(dead.kind));
    }
    let dead = DeadKey::decode(key).map(|it| it.encode());
    same(dead.ok(), class::DEAD);
    let name = NameKey::decode(key).map(|it| it.encode());
    same(name.ok(), class::NAME);
    let pause = PauseKey::decode(key).map(|it| it.encode());
    same(pause.ok(), class::PAUSE);
    let kind_name = KindNameKey::decode(key).map(|it| it.encode());
    same(kind_name.ok(), class::KIND_NAME);
    let quarantine = QuarantineKey::decode(key).map(|it| it.encode());
    same(quarantine.ok(), class::QUARANTINE);
}

fn timer(key: &Key) {
    let is_timer = is_of_class(key, class::TIMER);
    let head = lane_head(key);
    assert_eq!(head.is_some(), is_timer);
    let Some(head) = head else {
        assert!(TimerKey::decode(key).is_err());
        return;
    };
    let lane = TimerKey::lane_start(head.kind)..TimerKey::lane_end(head.kind);
    assert!(lane.contains(key), "{key:?} is not in the lane {lane:?}");
    match TimerKey::decode(key) {
        Ok(timer) => {
            assert_eq!(timer.encode(), key);
            assert_eq!((timer.kind, timer.due_ms), (head.kind, head.due_ms));
            let due_by = |now_ms| *key < TimerKey::lane_due_end(timer.kind, now_ms);
            assert!(due_by(timer.due_ms), "not due at its due");
            assert!(
                timer.due_ms == 0 || !due_by(timer.due_ms - 1),
                "due too early"
            );
        }
        // What does not decode is set aside, and must be found again as it was.
        Err(_) => {
            let aside = QuarantineKey::of(key);
            assert_eq!(aside.original(), key);
            assert_eq!(QuarantineKey::decode(&aside.encode()), Ok(aside));
        }
    }
}

fn timers_order_as_their_fields(first: &Key, second: &Key) {
    let (Ok(a), Ok(b)) = (TimerKey::decode(first), TimerKey::decode(second)) else {
        return;
    };
    let fields = |key: TimerKey| (key.kind, key.due_ms, key.generation, key.reference);
    assert_eq!(first.cmp(second), fields(a).cmp(&fields(b)));
}

fn dead_order_as_their_fields(first: &Key, second: &Key) {
    let (Ok(a), Ok(b)) = (DeadKey::decode(first), DeadKey::decode(second)) else {
        return;
    };
    let fields = |key: DeadKey| (key.kind, key.dead_at_ms, key.generation, key.reference);
    assert_eq!(first.cmp(second), fields(a).cmp(&fields(b)));
}

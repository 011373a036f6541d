use bytes::Bytes;
use dueline::rows::{
    DeadKey, KindNameKey, LaneHead, Malformed, NameKey, PauseKey, QuarantineKey, TimerKey, class,
    class_end, class_start, is_of_class, is_reserved, lane_head,
};
use dueline::store::Key;

/// What reads keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyReaders {
    /// A timer's key.
    pub timer: fn(&Key) -> Result<TimerKey, Malformed>,
    /// A dead timer's key.
    pub dead: fn(&Key) -> Result<DeadKey, Malformed>,
    /// A name's key.
    pub name: fn(&Key) -> Result<NameKey, Malformed>,
    /// A paused kind's key.
    pub pause: fn(&Key) -> Result<PauseKey, Malformed>,
    /// The key of a kind's name.
    pub kind_name: fn(&Key) -> Result<KindNameKey, Malformed>,
    /// The key of a row that was set aside.
    pub quarantine: fn(&Key) -> Result<QuarantineKey, Malformed>,
    /// The lane and due of any key of the timer class.
    pub lane_head: fn(&[u8]) -> Option<LaneHead>,
}

impl KeyReaders {
    /// The product's.
    pub const SOUND: Self = Self {
        timer: TimerKey::decode,
        dead: DeadKey::decode,
        name: NameKey::decode,
        pause: PauseKey::decode,
        kind_name: KindNameKey::decode,
        quarantine: QuarantineKey::decode,
        lane_head,
    };
}

/// Two keys, the first as long as the first byte says: what decodes encodes to the same bytes, lies in
/// its class and lane, and orders as its fields do.
///
/// # Panics
/// If it does not.
pub fn row_keys(data: &[u8]) {
    row_keys_read_by(data, &KeyReaders::SOUND);
}

/// [`row_keys`], with readers that may be wrong.
///
/// # Panics
/// As [`row_keys`].
pub fn row_keys_read_by(data: &[u8], readers: &KeyReaders) {
    let Some((length, rest)) = data.split_first() else {
        return;
    };
    let (first, second) = rest.split_at(usize::from(*length).min(rest.len()));
    let first = Bytes::copy_from_slice(first);
    let second = Bytes::copy_from_slice(second);
    one(&first, readers);
    one(&second, readers);
    timers_order_as_their_fields(&first, &second, readers);
    dead_order_as_their_fields(&first, &second, readers);
}

fn one(key: &Key, readers: &KeyReaders) {
    timer(key, readers);
    let same = |encoded: Option<Key>, of: u8| {
        if let Some(encoded) = encoded {
            assert_eq!(encoded, key);
            assert!(is_of_class(key, of) && is_reserved(key));
            assert!(class_start(of) <= *key && *key < class_end(of));
        }
    };
    if let Ok(dead) = (readers.dead)(key) {
        assert!(DeadKey::lane_start(dead.kind) <= *key && *key < DeadKey::lane_end(dead.kind));
    }
    let dead = (readers.dead)(key).map(|it| it.encode());
    same(dead.ok(), class::DEAD);
    let name = (readers.name)(key).map(|it| it.encode());
    same(name.ok(), class::NAME);
    let pause = (readers.pause)(key).map(|it| it.encode());
    same(pause.ok(), class::PAUSE);
    let kind_name = (readers.kind_name)(key).map(|it| it.encode());
    same(kind_name.ok(), class::KIND_NAME);
    let quarantine = (readers.quarantine)(key).map(|it| it.encode());
    same(quarantine.ok(), class::QUARANTINE);
}

fn timer(key: &Key, readers: &KeyReaders) {
    let is_timer = is_of_class(key, class::TIMER);
    let head = (readers.lane_head)(key);
    assert_eq!(head.is_some(), is_timer);
    let Some(head) = head else {
        assert!((readers.timer)(key).is_err());
        return;
    };
    let lane = TimerKey::lane_start(head.kind)..TimerKey::lane_end(head.kind);
    assert!(lane.contains(key), "{key:?} is not in the lane {lane:?}");
    // A wake at the due that the key shows finds it, however short it is.
    let due_end = TimerKey::lane_due_end(head.kind, head.due_ms);
    assert!(*key < due_end, "{key:?} is not found at {}", head.due_ms);
    match (readers.timer)(key) {
        Ok(timer) => {
            assert_eq!(timer.encode(), key);
            assert_eq!((timer.kind, timer.due_ms), (head.kind, head.due_ms));
            let due_by = |now_ms| *key < TimerKey::lane_due_end(timer.kind, now_ms);
            let is_early = timer.due_ms > 0 && due_by(timer.due_ms - 1);
            assert!(!is_early, "{key:?} is found too early");
        }
        // What does not decode is set aside, and must be found again as it was.
        Err(_) => {
            let aside = QuarantineKey::of(key);
            assert_eq!(aside.original(), key);
            assert_eq!((readers.quarantine)(&aside.encode()), Ok(aside));
        }
    }
}

fn timers_order_as_their_fields(first: &Key, second: &Key, readers: &KeyReaders) {
    let (Ok(a), Ok(b)) = ((readers.timer)(first), (readers.timer)(second)) else {
        return;
    };
    let fields = |key: TimerKey| (key.kind, key.due_ms, key.generation, key.reference);
    assert_eq!(first.cmp(second), fields(a).cmp(&fields(b)));
}

fn dead_order_as_their_fields(first: &Key, second: &Key, readers: &KeyReaders) {
    let (Ok(a), Ok(b)) = ((readers.dead)(first), (readers.dead)(second)) else {
        return;
    };
    let fields = |key: DeadKey| (key.kind, key.dead_at_ms, key.generation, key.reference);
    assert_eq!(first.cmp(second), fields(a).cmp(&fields(b)));
}

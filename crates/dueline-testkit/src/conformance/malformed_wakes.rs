//! Keys of the timer class that do not decode are woken for too, so that they are looked at.

use dueline::limits::DUE_MS_MAX;
use dueline::rows::class;
use dueline::store::{Batch, Key};
use dueline::timers::TimerKind;

use super::subject::{KIND, NOW_MS, home, put_timer};
use super::{Make, Subject};

fn key(rest: &[u8]) -> Key {
    [&[class::TIMER, 0], rest].concat().into()
}

/// A key cut short anywhere wakes the lane it names, kind 0 if it names none, at the due it has so
/// far.
pub fn a_key_cut_short_is_woken_for(make: Make<'_>) {
    let due_ms: u64 = 0x0000_01ff_ffff_ffff;
    let mut whole = vec![KIND.0];
    whole.extend_from_slice(&due_ms.to_be_bytes());
    for len in 0..=whole.len() {
        let subject = Subject::make(make);
        let p = home();
        let short = key(&whole[..len]);
        subject.commit(&p, Batch::new().put(short.clone(), "damaged"));
        let kind = if len == 0 { TimerKind::INVALID } else { KIND };
        let mut padded = [0; 8];
        let kept = len.saturating_sub(1);
        padded[..kept].copy_from_slice(&due_ms.to_be_bytes()[..kept]);
        let wake_ms = u64::from_be_bytes(padded).max(NOW_MS);
        assert_eq!(subject.lane_wakes(&p, kind), [wake_ms], "{len} bytes");
        assert_eq!(
            subject.settle(&p, kind, &[wake_ms]),
            Some(wake_ms),
            "{len} bytes"
        );
        assert_eq!(subject.lane_wakes(&p, kind), [wake_ms], "{len} bytes");
        subject.commit(&p, Batch::new().delete(short));
        assert_eq!(subject.settle(&p, kind, &[wake_ms]), None, "{len} bytes");
        assert_eq!(subject.wakes(), []);
    }
}

/// Kind 0 is a lane, the one of rows too damaged to name theirs; its bare class key is its first.
pub fn kind_zero_is_a_lane(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(TimerKind::INVALID, NOW_MS + 100));
    subject.commit(&p, put_timer(TimerKind(1), NOW_MS + 50));
    assert_eq!(subject.lane_wakes(&p, TimerKind::INVALID), [NOW_MS + 100]);
    subject.commit(&p, Batch::new().put(key(&[]), "bare"));
    let served = subject.lane_wakes(&p, TimerKind::INVALID);
    assert_eq!(served.first(), Some(&NOW_MS));
    // Nobody can pause it, whatever lies where its pause would.
    subject.commit(&p, Batch::new().put([class::PAUSE, 0, 0].to_vec(), "stray"));
    assert_eq!(
        subject.settle(&p, TimerKind::INVALID, &served),
        Some(NOW_MS)
    );
    subject.commit(&p, Batch::new().delete(key(&[])));
    assert_eq!(
        subject.settle(&p, TimerKind::INVALID, &[NOW_MS]),
        Some(NOW_MS + 100)
    );
}

/// The last kind is a lane like any other: it ends with the class.
pub fn the_last_kind_is_a_lane(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let last = TimerKind(0xFF);
    subject.commit(&p, Batch::new().put("w\x01", "behind the class"));
    assert_eq!(subject.settle(&p, last, &[]), None);
    subject.commit(&p, put_timer(last, NOW_MS + 100));
    assert_eq!(
        subject.settle(&p, last, &[NOW_MS + 100]),
        Some(NOW_MS + 100)
    );
}

/// A due beyond the last time that can be scheduled is woken for at that time.
pub fn a_due_beyond_the_last_time_is_woken_for_at_the_last_time(make: Make<'_>) {
    for due_ms in [
        DUE_MS_MAX + 1,
        i64::MAX as u64,
        i64::MAX as u64 + 1,
        u64::MAX,
    ] {
        let subject = Subject::make(make);
        let p = home();
        subject.commit(&p, put_timer(KIND, due_ms));
        assert_eq!(subject.lane_wakes(&p, KIND), [DUE_MS_MAX]);
        assert_eq!(subject.settle(&p, KIND, &[DUE_MS_MAX]), Some(DUE_MS_MAX));
    }
    let subject = Subject::make(make);
    subject.commit(&home(), put_timer(KIND, DUE_MS_MAX));
    assert_eq!(subject.lane_wakes(&home(), KIND), [DUE_MS_MAX]);
}

/// A damaged row in front of a sound one is the one the lane is woken for.
pub fn a_damaged_row_in_front_is_looked_at_first(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, put_timer(KIND, NOW_MS + 500));
    subject.commit(&p, Batch::new().put(key(&[KIND.0, 0, 0]), "damaged"));
    let served = subject.lane_wakes(&p, KIND);
    assert_eq!(served.first(), Some(&NOW_MS));
    assert_eq!(subject.settle(&p, KIND, &served), Some(NOW_MS));
    subject.commit(&p, Batch::new().delete(key(&[KIND.0, 0, 0])));
    assert_eq!(subject.settle(&p, KIND, &[NOW_MS]), Some(NOW_MS + 500));
}

//! A store that outlives its process: everything committed is there afterwards, and the stop is
//! known for what it was.

use dueline::store::{Batch, StoreErrorKind};

use super::audit::audit;
use super::subject::{KIND, NOW_MS, OTHER, home, pause, put_timer};
use super::{Make, Stop, Subject};

fn written(make: Make<'_>) -> Subject {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(
        &p,
        put_timer(KIND, NOW_MS + 100).append(put_timer(OTHER, NOW_MS + 50)),
    );
    subject.commit(
        &p,
        Batch::new()
            .put("", "empty key")
            .put("gone", "v")
            .put(vec![0xff; 9], ""),
    );
    subject.commit(&p, Batch::new().delete("gone"));
    subject.commit(
        &crate::partition("away"),
        put_timer(KIND, NOW_MS).append(pause(OTHER)),
    );
    assert_eq!(
        subject.refusal(&p, Batch::new().put(vec![0; 1_025], "v")),
        StoreErrorKind::Invalid
    );
    let done = subject.group(
        &p,
        vec![
            Batch::new().put("grouped", "v"),
            Batch::new().put("lost", "v").require_present("gone"),
        ],
    );
    assert_eq!(done.committed(), 1);
    subject
}

/// Rows and wakes are what they were, after a crash as after a clean stop.
pub fn rows_and_wakes_outlive_the_process(make: Make<'_>) {
    for stop in [Stop::Clean, Stop::Crash] {
        let subject = written(make);
        let (p, q) = (home(), crate::partition("away"));
        let before = (subject.rows(&p), subject.rows(&q), subject.wakes());
        let subject = subject.stop_and_reopen(stop);
        assert_eq!(
            (subject.rows(&p), subject.rows(&q), subject.wakes()),
            before,
            "{stop:?}"
        );
        assert_eq!(audit(&subject, 1), (2, 0), "{stop:?}");
        subject.commit(
            &p,
            Batch::new().require_present("grouped").put("again", "v"),
        );
    }
}

/// A lane whose wake is not known to the reopened store is still woken for new timers.
pub fn a_reopened_store_keeps_setting_wakes(make: Make<'_>) {
    for stop in [Stop::Clean, Stop::Crash] {
        let subject = written(make).stop_and_reopen(stop);
        let p = home();
        subject.commit(&p, put_timer(KIND, NOW_MS + 20));
        assert_eq!(
            subject.lane_wakes(&p, KIND).first(),
            Some(&(NOW_MS + 20)),
            "{stop:?}"
        );
        subject.commit(&p, put_timer(OTHER, NOW_MS + 900));
        assert_eq!(
            subject.lane_wakes(&p, OTHER).first(),
            Some(&(NOW_MS + 50)),
            "{stop:?}"
        );
    }
}

/// After a crash the store tells when it was opened; after a clean stop, and at first, it does not.
pub fn an_unclean_stop_is_known(make: Make<'_>) {
    let subject = written(make);
    assert_eq!(
        subject.wake_store().unclean_opened_at_ms(),
        None,
        "a new store"
    );
    subject.clock().advance_ms(1_000);
    let subject = subject.stop_and_reopen(Stop::Crash);
    assert_eq!(
        subject.wake_store().unclean_opened_at_ms(),
        Some(NOW_MS + 1_000)
    );
    let subject = written(make).stop_and_reopen(Stop::Clean);
    assert_eq!(subject.wake_store().unclean_opened_at_ms(), None);
}

//! Cursors that do not decode, partitions that do not answer.

use dueline::kinds::publication_recheck::{DEPENDENCIES_MAX, PUBLICATION_RECHECK};
use dueline::rows::{class, class_end, class_start};
use dueline::store::StoreErrorKind;
use dueline::timers::{Policy, Timer, TimerState};
use dueline_testkit::block_on;

use super::{RECORD, Rig, dependencies, record};
use crate::Make;

/// A waiting record with this payload in its timer.
fn with_payload(make: Make<'_>, payload: Vec<u8>) -> Rig {
    let rig = Rig::new(make);
    rig.world.commit(record(&dependencies(&[("q", 9)])));
    let timer = Timer::new(PUBLICATION_RECHECK, RECORD)
        .due_at(rig.world.now_ms())
        .payload(payload)
        .named();
    let timers = &rig.world.timers;
    block_on(timers.schedule(&rig.world.partition, timer, Policy::Replace)).unwrap();
    rig
}

pub fn a_cursor_that_does_not_decode_fails(make: Make<'_>) {
    let short = vec![1; 36];
    let long = vec![1; 38];
    let newer = [&[2][..], &[0; 36]].concat();
    for payload in [short, long, newer] {
        let rig = with_payload(make, payload.clone());
        let before = rig.remote.counts();
        assert_eq!(rig.tick().total.failed, 1);
        assert_eq!((rig.remote.counts() - before).row_reads(), 0);
        let timer = rig.timer().unwrap();
        assert_eq!(timer.payload, payload, "kept");
        assert_eq!(timer.state, TimerState::Retrying);
        for _ in 0..19 {
            rig.world.advance_ms(720_000);
            rig.tick();
        }
        assert_eq!(
            rig.timer().unwrap().state,
            TimerState::Dead,
            "nothing mends it"
        );
        let dead = rig
            .world
            .rows(class_start(class::DEAD), class_end(class::DEAD));
        assert!(dead[0].1.ends_with(&payload));
    }
}

pub fn a_cursor_behind_the_last_dependency_is_refused(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 9)]);
    rig.publish(&of);
    rig.look();
    let mut payload = rig.timer().unwrap().payload.to_vec();
    for (position, is_refused) in [(9_u8, false), (10, true), (255, true)] {
        payload[36] = position;
        let rig = with_payload(make, payload.clone());
        let report = rig.tick();
        assert_eq!(report.total.failed, u64::from(is_refused), "{position}");
        assert_eq!(rig.is_released(), !is_refused, "{position}");
        if is_refused {
            assert_eq!(rig.timer().unwrap().payload, payload);
        }
    }
}

pub fn a_partition_that_does_not_answer_backs_off(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 9), ("r", 1)]);
    rig.publish(&of);
    for (partition, key) in &of {
        rig.show(partition, key, true);
    }
    rig.remote.fail_read(3, StoreErrorKind::Unavailable);
    assert_eq!(rig.look(), 3);
    assert_eq!(rig.position(), Some(9), "what was seen is kept");
    rig.remote.fail_read(1, StoreErrorKind::Unavailable);
    rig.world.advance_ms(5_000);
    assert_eq!(rig.tick().total.failed, 1);
    assert_eq!(rig.position(), Some(9));
    assert_eq!(rig.look(), 1);
    assert!(rig.is_released());
}

pub fn a_dependency_that_is_named_twice_counts_once(make: Make<'_>) {
    let rig = Rig::new(make);
    let mut of: Vec<_> = (0..DEPENDENCIES_MAX)
        .map(|number| ("q".to_owned(), format!("{number}")))
        .collect();
    of.push(("q".to_owned(), "0".to_owned()));
    rig.publish(&of);
    assert_eq!(rig.look(), 1, "the first is missing");
}

pub fn a_record_may_not_have_too_many_dependencies(make: Make<'_>) {
    let rig = Rig::new(make);
    let of: Vec<_> = (0..=DEPENDENCIES_MAX)
        .map(|number| ("q".to_owned(), format!("{number}")))
        .collect();
    rig.publish(&of);
    let before = rig.remote.counts();
    assert_eq!(rig.tick().total.failed, 1);
    assert_eq!((rig.remote.counts() - before).row_reads(), 0);
    let error = rig.timer().unwrap().last_error.unwrap();
    assert!(error.error.contains("8192 dependencies"), "{error:?}");
}

//! How long the row of an end stays.

use dueline::kinds::reservation_reconcile::{
    End, Forgotten, RESERVATION_RECONCILE, Reserved, Settlement,
};
use dueline_testkit::block_on;

use super::setting::{COMMIT_WITHIN_MS, SKEW_MS, Setting, mail, terms};
use crate::Make;
use crate::world::START_MS;

fn timers_left(setting: &Setting) -> usize {
    let keys = setting.world.timer_keys();
    keys.iter()
        .filter(|key| key[2] == RESERVATION_RECONCILE.0)
        .count()
}

pub fn the_same_timer_removes_what_was_kept_long_enough(make: Make<'_>) {
    for is_settled in [true, false] {
        let setting = Setting::new(make);
        let world = &setting.world;
        let made = setting.reserve(&terms().kept_for_ms(100_000));
        let deadline_ms = COMMIT_WITHIN_MS + SKEW_MS;
        let kept_until_ms = if is_settled {
            world.advance_ms(10_000);
            setting.commit(made.serial);
            110_000
        } else {
            deadline_ms + 100_000
        };
        let now_ms = world.now_ms() - START_MS;
        world.advance_ms(deadline_ms - now_ms);
        world.tick(&setting.engine);
        let kept = setting.read().unwrap();
        assert_eq!(kept.kept_until_ms, Some(START_MS + kept_until_ms));
        assert_eq!(timers_left(&setting), 1);
        world.advance_ms(kept_until_ms - deadline_ms - 1);
        world.tick(&setting.engine);
        assert_eq!(setting.read(), Some(kept));
        world.advance_ms(1);
        world.tick(&setting.engine);
        assert_eq!(setting.read(), None);
        assert_eq!(timers_left(&setting), 0);
        assert!(world.kind_rows().is_empty());
        assert_eq!(setting.commit(made.serial), Settlement::Missing);
    }
}

pub fn a_retention_that_is_over_by_the_deadline_purges_at_once(make: Make<'_>) {
    let setting = Setting::new(make);
    let made = setting.reserve(&terms().kept_for_ms(1_000));
    setting.commit(made.serial);
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let report = setting.world.tick(&setting.engine);
    assert_eq!((report.total.fired, report.total.rescheduled), (1, 0));
    assert_eq!(setting.read(), None);
}

pub fn without_retention_the_row_goes_with_the_end(make: Make<'_>) {
    let setting = Setting::new(make);
    let made = setting.reserve(&terms().kept_for_ms(0).outbox(mail()));
    let Settlement::Settled(ended) = setting.commit(made.serial) else {
        panic!("it is pending");
    };
    assert_eq!(ended.end(), Some(&End::Committed));
    assert_eq!(setting.read(), None);
    assert_eq!(setting.outcomes().len(), 1);

    let again = setting.reserve(&terms().kept_for_ms(0).outbox(mail()));
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    setting.world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.read(), None, "abandoned and gone");
    assert_eq!(setting.outcomes().len(), 2);
    assert_eq!(timers_left(&setting), 0);
    assert_eq!(setting.commit(again.serial), Settlement::Missing);
}

pub fn without_an_end_of_retention_it_stays_until_it_is_forgotten(make: Make<'_>) {
    let setting = Setting::new(make);
    let (reservations, partition) = (&setting.reservations, &setting.world.partition);
    let made = setting.reserve(&terms());
    let forget = |serial| block_on(reservations.forget(partition, &setting.id, serial)).unwrap();
    assert_eq!(forget(made.serial), Forgotten::StillPending(made.clone()));
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    setting.world.tick(&setting.engine);
    assert_eq!(timers_left(&setting), 0, "nothing is left to do");
    setting.world.advance_ms(1_000_000_000);
    setting.world.tick(&setting.engine);
    assert_eq!(setting.end(), Some(End::Abandoned));
    assert_eq!(forget(made.serial + 1), Forgotten::Missing);
    assert_eq!(forget(made.serial), Forgotten::Done);
    assert_eq!(forget(made.serial), Forgotten::Missing);
    assert!(
        matches!(setting.ask(&terms()), Reserved::Made(_)),
        "the id is free"
    );
}

pub fn the_timer_of_a_forgotten_one_leaves_the_next_alone(make: Make<'_>) {
    let setting = Setting::new(make);
    let first = setting.reserve(&terms()).serial;
    setting.abort(first, "no");
    let forgotten = setting
        .reservations
        .forget(&setting.world.partition, &setting.id, first);
    assert_eq!(block_on(forgotten).unwrap(), Forgotten::Done);
    setting.world.advance_ms(20_000);
    let second = setting.reserve(&terms());
    setting.world.advance_ms(21_000);
    let report = setting.world.tick(&setting.engine);
    assert_eq!((report.total.fired, report.total.rescheduled), (1, 0));
    assert_eq!(setting.read(), Some(second));
    assert_eq!(timers_left(&setting), 1);
}

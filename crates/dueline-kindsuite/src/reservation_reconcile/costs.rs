//! What reservations cost, counted, and the bytes of their rows.

use dueline::kinds::reservation_reconcile::{
    End, RESERVATION_RECONCILE, ReservationId, Settlement, Terms,
};
use dueline::rows::{TimerRow, class, class_end, class_start};
use dueline::store::Batch;
use dueline::timers::TickBudget;
use dueline_testkit::block_on;

use super::setting::{COMMIT_WITHIN_MS, SKEW_MS, Setting, mail, terms};
use crate::Make;
use crate::format::assert_shown;

pub fn what_reservations_cost_is_as_documented(make: Make<'_>) {
    for (terms, of_outbox) in [
        (terms(), [0, 0, 0, 0]),
        (terms().outbox(mail()), [1, 0, 3, 0]),
    ] {
        // The outbox is empty each time, so that its timer is counted too.
        let with = |plain: [u64; 4]| {
            let mut both = plain;
            for (sum, more) in both.iter_mut().zip(of_outbox) {
                *sum += more;
            }
            both
        };
        let setting = Setting::new(make);
        let mut serial = 0;
        let reserve = || serial = setting.reserve(&terms).serial;
        assert_eq!(setting.world.spent(reserve), [0, 1, 2, 0], "reserve");
        let again = || drop(setting.ask(&terms));
        assert_eq!(
            setting.world.spent(again),
            [1, 1, 2, 0],
            "reserved already: a commit that loses"
        );
        let commit = || assert!(matches!(setting.commit(serial), Settlement::Settled(_)));
        assert_eq!(setting.world.spent(commit), with([1, 1, 1, 0]), "commit");
        let again = || drop(setting.commit(serial));
        assert_eq!(
            setting.world.spent(again),
            [1, 0, 0, 0],
            "committed already"
        );
        setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
        let drain = || drop(setting.world.tick(&setting.engine));
        assert_eq!(
            setting.world.spent(drain),
            [1, 1, 0, 1],
            "the timer of one that was settled"
        );

        let setting = Setting::new(make);
        let serial = setting.reserve(&terms).serial;
        let abort = || {
            assert!(matches!(
                setting.abort(serial, "no"),
                Settlement::Settled(_)
            ))
        };
        assert_eq!(setting.world.spent(abort), with([1, 1, 1, 0]), "abort");

        let setting = Setting::new(make);
        setting.reserve(&terms);
        setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
        let abandon = || drop(setting.world.tick(&setting.engine));
        assert_eq!(
            setting.world.spent(abandon),
            with([1, 1, 1, 1]),
            "abandoned"
        );
    }
    let setting = Setting::new(make);
    setting.reserve(&terms().kept_for_ms(60_000));
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let abandon = || drop(setting.world.tick(&setting.engine));
    assert_eq!(
        setting.world.spent(abandon),
        [1, 1, 2, 1],
        "abandoned, and to be purged"
    );
    setting.world.advance_ms(60_000);
    let purge = || drop(setting.world.tick(&setting.engine));
    assert_eq!(setting.world.spent(purge), [1, 1, 0, 2], "purged");
}

/// Ten thousand, reserved twenty to a batch; one in ten is committed in time, the others are abandoned.
pub fn ten_thousand_reservations_cost_as_documented(make: Make<'_>) {
    const ALL: usize = 10_000;
    const TO_A_BATCH: usize = 20;
    let setting = Setting::new(make);
    let world = &setting.world;
    let terms = Terms::commit_within_ms(COMMIT_WITHIN_MS);
    let mut to_commit = Vec::new();
    let reserve = || {
        for first in (0..ALL).step_by(TO_A_BATCH) {
            let mut batch = Batch::new();
            for nth in first..first + TO_A_BATCH {
                let id = ReservationId::new(format!("r{nth:05}")).unwrap();
                let planned = setting.reservations.plan_reserve(&id, &terms).unwrap();
                batch = batch.append(planned.batch);
                if nth % 10 == 0 {
                    to_commit.push((id, planned.outcome.serial));
                }
            }
            world.commit(batch);
        }
    };
    assert_eq!(setting.world.spent(reserve), [0, 500, 20_000, 0]);
    let commit = || {
        for (id, serial) in &to_commit {
            let settled = setting.reservations.commit(&world.partition, id, *serial);
            assert!(matches!(block_on(settled).unwrap(), Settlement::Settled(_)));
        }
    };
    assert_eq!(setting.world.spent(commit), [1_000, 1_000, 1_000, 0]);

    world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let budget = TickBudget {
        max_fired: 20_000,
        max_per_kind: 20_000,
        max_scanned: 20_000,
        max_elapsed_ms: 60_000,
    };
    let settle = || {
        let report = world.tick_within(&setting.engine, budget);
        assert_eq!((report.total.fired, report.total.failed), (10_000, 0));
    };
    let [reads, commits, puts, deletes] = setting.world.spent(settle);
    assert_eq!(
        (puts, deletes),
        (9_000, 10_000),
        "a put for each that was abandoned"
    );
    // A group of 64 is one commit.
    assert_eq!((reads, commits), (10_000, 157));
    let (ops, bytes) = world.largest_batch();
    assert!(
        ops <= 80 && bytes < 64 * 1_024,
        "{ops} operations, {bytes} bytes"
    );
    let last = ReservationId::new("r09999").unwrap();
    let last = block_on(setting.reservations.read(&world.partition, &last)).unwrap();
    assert_eq!(last.unwrap().end(), Some(&End::Abandoned));
}

pub fn rows_of_reservations_are_as_documented(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let terms = terms()
        .outbox(mail())
        .kept_for_ms(86_400_000)
        .detail("order-42");
    let serial = setting.reserve(&terms).serial;
    let timers = world.rows(class_start(class::TIMER), class_end(class::TIMER));
    assert_eq!(timers[0].0[2], RESERVATION_RECONCILE.0);
    let payload = TimerRow::decode(&timers[0].1).unwrap().payload;
    assert_shown(&[(setting.key(), world.get(&setting.key()).unwrap())]);
    assert_shown(&[(timers[0].0.clone(), payload)]);
    setting.abort(serial, "sold out");
    assert_shown(&[(setting.key(), world.get(&setting.key()).unwrap())]);

    let setting = Setting::new(make);
    setting.reserve(&Terms::commit_within_ms(COMMIT_WITHIN_MS));
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    setting.world.tick(&setting.engine);
    assert_shown(&[(setting.key(), setting.world.get(&setting.key()).unwrap())]);
}

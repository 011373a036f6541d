//! Reserving, settling, extending.

use dueline::kinds::outcome_delivery::{OUTCOME_DELIVERY, OutboxName};
use dueline::kinds::reservation_reconcile::{
    End, RESERVATION_DETAIL_BYTES_MAX, RESERVATION_ID_BYTES_MAX, RESERVATION_REASON_BYTES_MAX,
    RESERVATION_RECONCILE, ReservationId, Reserved, Settlement, Terms,
};
use dueline::limits::DUE_MS_MAX;
use dueline::store::{Batch, BatchOutcome};
use dueline::timers::TimerError;
use dueline_testkit::block_on;

use super::setting::{COMMIT_WITHIN_MS, SKEW_MS, Setting, mail, terms};
use crate::Make;
use crate::world::START_MS;

pub fn a_reservation_and_its_timer_are_one_batch(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let planned = setting
        .reservations
        .plan_reserve(&setting.id, &terms().detail("order-42"))
        .unwrap();
    assert_eq!(planned.batch.ops(), 4);
    let made = planned.outcome.clone();
    assert!(made.is_pending());
    assert_eq!(made.commit_by_ms, START_MS + COMMIT_WITHIN_MS);
    assert_eq!(made.deadline_ms, START_MS + COMMIT_WITHIN_MS + SKEW_MS);
    let own = Batch::new().require_absent("order").put("order", "open");
    world.commit(own.append(planned.batch));
    assert_eq!(setting.read(), Some(made));
    assert_eq!(world.timer_keys().len(), 1);
    assert_eq!(world.timer_keys()[0][2], RESERVATION_RECONCILE.0);
}

pub fn an_id_is_reserved_once(make: Make<'_>) {
    let setting = Setting::new(make);
    let made = setting.reserve(&terms());
    assert_eq!(setting.ask(&terms()), Reserved::Exists(made.clone()));
    setting.commit(made.serial);
    let Reserved::Exists(ended) = setting.ask(&terms()) else {
        panic!("an id that has ended is not free");
    };
    assert_eq!(ended.end(), Some(&End::Committed));
    assert_eq!(setting.world.timer_keys().len(), 1);
}

pub fn a_reservation_ends_in_one_way(make: Make<'_>) {
    for ends_first in [End::Committed, End::Aborted("sold out".to_owned())] {
        let setting = Setting::new(make);
        let serial = setting.reserve(&terms().outbox(mail())).serial;
        let first = match &ends_first {
            End::Aborted(reason) => setting.abort(serial, reason),
            _ => setting.commit(serial),
        };
        let Settlement::Settled(settled) = first else {
            panic!("{first:?}");
        };
        assert_eq!(settled.end(), Some(&ends_first));
        assert_eq!(setting.read(), Some(settled.clone()));
        let before = Settlement::EndedBefore(settled);
        assert_eq!(setting.commit(serial), before);
        assert_eq!(setting.abort(serial, "too late"), before);
        setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
        setting.world.tick_until_quiet(&setting.engine, 5);
        assert_eq!(setting.end(), Some(ends_first));
        assert_eq!(setting.outcomes().len(), 1);
    }
}

pub fn of_two_ends_planned_from_one_reading_one_loses(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let serial = setting.reserve(&terms()).serial;
    let store = world.shared();
    let commit = setting
        .reservations
        .plan_commit(&*store, &world.partition, &setting.id, serial);
    let commit = block_on(commit).unwrap();
    let abort =
        setting
            .reservations
            .plan_abort(&*store, &world.partition, &setting.id, serial, "no");
    let abort = block_on(abort).unwrap();
    world.commit(abort.batch);
    let paid = commit.batch.append(Batch::new().put("order", "paid"));
    assert!(!world.apply(paid).is_committed());
    assert_eq!(world.get(&"order".into()), None);
    assert_eq!(setting.end(), Some(End::Aborted("no".to_owned())));
}

pub fn a_commit_holds_to_the_last_millisecond_by_the_stores_clock(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let serial = setting.reserve(&terms()).serial;
    world.advance_ms(COMMIT_WITHIN_MS);
    let store = world.shared();
    let plan = setting
        .reservations
        .plan_commit(&*store, &world.partition, &setting.id, serial);
    let planned = block_on(plan).unwrap();
    world.advance_ms(1);
    let outcome = world.apply(planned.batch.clone());
    assert!(
        matches!(outcome, BatchOutcome::DeadlinePassed { .. }),
        "{outcome:?}"
    );
    assert!(matches!(setting.commit(serial), Settlement::TooLate(_)));
    // Planned in time, and too late by the time it is offered.
    world.clock.jump_wall_ms(-1);
    let clock = world.clock.clone();
    world
        .store
        .before_commit(1, move |_, _, _| clock.advance_ms(1));
    assert!(matches!(setting.commit(serial), Settlement::TooLate(_)));
    assert!(
        matches!(setting.abort(serial, "no"), Settlement::Settled(_)),
        "an abort may be late"
    );

    let setting = Setting::new(make);
    let serial = setting.reserve(&terms()).serial;
    setting.world.advance_ms(COMMIT_WITHIN_MS);
    assert!(matches!(setting.commit(serial), Settlement::Settled(_)));
}

pub fn the_serial_keeps_a_late_commit_off_the_next_of_its_id(make: Make<'_>) {
    let setting = Setting::new(make);
    let first = setting.reserve(&terms().kept_for_ms(0)).serial;
    assert_eq!(setting.commit(first + 1), Settlement::Missing);
    setting.abort(first, "changed my mind");
    let second = setting.reserve(&terms());
    assert_ne!(second.serial, first);
    assert_eq!(setting.commit(first), Settlement::Missing);
    assert_eq!(setting.abort(first, "again"), Settlement::Missing);
    assert_eq!(setting.read(), Some(second.clone()));
    // The first one's timer is of no reservation any more.
    setting.world.advance_ms(COMMIT_WITHIN_MS);
    assert!(matches!(
        setting.commit(second.serial),
        Settlement::Settled(_)
    ));
}

pub fn an_extension_keeps_the_timer_and_moves_the_deadline(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let made = setting.reserve(&terms().detail("held"));
    world.advance_ms(30_000);
    let extend = |detail: &'static str, ms| {
        let extended = setting.reservations.extend(
            &world.partition,
            &setting.id,
            made.serial,
            detail.into(),
            ms,
        );
        block_on(extended).unwrap()
    };
    let Settlement::Settled(ticketed) = extend("ticketed", 60_000) else {
        panic!("it is pending");
    };
    assert_eq!(ticketed.commit_by_ms, START_MS + 90_000);
    assert_eq!(ticketed.deadline_ms, START_MS + 91_000);
    assert_eq!(ticketed.detail, "ticketed");
    let Settlement::Settled(shorter) = extend("paying", 1) else {
        panic!("it is pending");
    };
    assert_eq!(shorter.commit_by_ms, ticketed.commit_by_ms, "never shorter");
    assert_eq!(world.timer_keys().len(), 1);

    world.advance_ms(11_000);
    let report = world.tick(&setting.engine);
    assert_eq!(report.total.rescheduled, 1, "the old deadline is too early");
    assert!(setting.read().unwrap().is_pending());
    world.advance_ms(49_999);
    world.tick(&setting.engine);
    assert!(setting.read().unwrap().is_pending());
    assert!(matches!(extend("late", 60_000), Settlement::TooLate(_)));
    world.advance_ms(1);
    world.tick(&setting.engine);
    assert_eq!(setting.end(), Some(End::Abandoned));
    assert!(matches!(
        extend("later", 60_000),
        Settlement::EndedBefore(_)
    ));
}

pub fn an_end_is_told_in_its_own_batch(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let serial = setting
        .reserve(&terms().outbox(mail()).detail("order-42"))
        .serial;
    let store = world.shared();
    let plan =
        setting
            .reservations
            .plan_abort(&*store, &world.partition, &setting.id, serial, "sold out");
    world.commit(block_on(plan).unwrap().batch);
    let told = setting.outcomes();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, format!("seat-12A.{serial:016x}"));
    let body: serde_json::Value = serde_json::from_slice(&told[0].1).unwrap();
    let expected = serde_json::json!({
        "reservation": "seat-12A",
        "serial": serial.to_string(),
        "end": "aborted",
        "reason": "sold out",
        "ended_at_ms": START_MS,
        "detail": "order-42",
    });
    assert_eq!(body, expected);
    let wakes = world.timer_keys();
    let of_outbox = wakes.iter().filter(|key| key[2] == OUTCOME_DELIVERY.0);
    assert_eq!(of_outbox.count(), 1, "the outbox has its timer");
}

pub fn the_caller_may_write_the_messages(make: Make<'_>) {
    let mut setting = Setting::new(make);
    setting.reservations = setting
        .reservations
        .clone()
        .message(|reservation| format!("{} is over", reservation.detail.escape_ascii()).into());
    setting.engine = setting.world.engine_of([setting.reservations.entry()]);
    setting.reserve(&terms().outbox(mail()).detail("order-42"));
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    setting.world.tick(&setting.engine);
    assert_eq!(setting.outcomes()[0].1, "order-42 is over");
}

pub fn limits_of_reservations_are_refused_with_their_figures(make: Make<'_>) {
    let setting = Setting::new(make);
    for (len, fits) in [
        (0, false),
        (1, true),
        (RESERVATION_ID_BYTES_MAX, true),
        (RESERVATION_ID_BYTES_MAX + 1, false),
    ] {
        assert_eq!(
            ReservationId::new(vec![b'i'; len]).is_ok(),
            fits,
            "id of {len}"
        );
    }
    let over = vec![0; RESERVATION_DETAIL_BYTES_MAX + 1];
    let beyond = DUE_MS_MAX - START_MS - SKEW_MS + 1;
    for terms in [
        terms().detail(over.clone()),
        Terms::commit_within_ms(beyond),
        terms().skew_ms(u64::MAX),
    ] {
        let error = setting.reservations.plan_reserve(&setting.id, &terms);
        assert!(matches!(error.unwrap_err(), TimerError::Invalid(_)));
    }
    let serial = setting.reserve(&terms()).serial;
    let (reservations, partition) = (&setting.reservations, &setting.world.partition);
    let reason = "r".repeat(RESERVATION_REASON_BYTES_MAX + 1);
    let long = reservations.abort(partition, &setting.id, serial, &reason);
    assert!(matches!(
        block_on(long).unwrap_err(),
        TimerError::Invalid(_)
    ));
    let detail = reservations.extend(partition, &setting.id, serial, over.into(), 1);
    assert!(matches!(
        block_on(detail).unwrap_err(),
        TimerError::Invalid(_)
    ));
    let later = reservations.extend(partition, &setting.id, serial, "".into(), beyond);
    assert!(matches!(
        block_on(later).unwrap_err(),
        TimerError::Invalid(_)
    ));
    let longest = reservations.abort(partition, &setting.id, serial, &reason[1..]);
    assert!(matches!(block_on(longest).unwrap(), Settlement::Settled(_)));
}

/// Bytes that are longest in a message: JSON writes each control character as six.
pub fn the_largest_reservation_ends_within_a_handlers_batch(make: Make<'_>) {
    for byte in [0xff, 0x01] {
        let mut setting = Setting::new(make);
        setting.id = ReservationId::new(vec![byte; RESERVATION_ID_BYTES_MAX]).unwrap();
        let largest = terms()
            .outbox(OutboxName::new(vec![byte; 64]).unwrap())
            .kept_for_ms(u64::MAX - 1)
            .detail(vec![byte; RESERVATION_DETAIL_BYTES_MAX]);
        setting.reserve(&largest);
        setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
        let report = setting.world.tick(&setting.engine);
        assert_eq!((report.total.rescheduled, report.total.failed), (1, 0));
        assert_eq!(setting.end(), Some(End::Abandoned));

        setting.id = ReservationId::new(vec![byte; RESERVATION_ID_BYTES_MAX - 1]).unwrap();
        let serial = setting.reserve(&largest).serial;
        let reason = char::from(byte & 0x7f).to_string();
        let aborted = setting.abort(serial, &reason.repeat(RESERVATION_REASON_BYTES_MAX));
        assert!(matches!(aborted, Settlement::Settled(_)));
        let (ops, bytes) = setting.world.largest_batch();
        assert!(
            ops <= 14 && bytes <= 272 * 1_024,
            "{ops} operations, {bytes} bytes"
        );
    }
}

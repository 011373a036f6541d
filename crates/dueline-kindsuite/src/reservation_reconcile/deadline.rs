//! The deadline as arbiter.

use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::OutboxName;
use dueline::kinds::reservation_reconcile::{
    End, OnAbandon, RESERVATION_ID_BYTES_MAX, RESERVATION_RECONCILE, Reservation, ReservationId,
    Settlement, Terms,
};
use dueline::store::{Batch, Key, StoreErrorKind};
use dueline::timers::{Engine, HandlerError, Registry, RunReport, Timer, TimerCtx};
use dueline_testkit::{CommitFault, ManualClock, block_on, test_runtime};

use super::setting::{COMMIT_WITHIN_MS, SKEW_MS, Setting, mail, terms};
use crate::Make;

/// A write that may take 40 s and a read that may take 69 s, each with a second for the clocks.
pub fn what_nobody_settles_is_abandoned_at_its_deadline_and_not_before(make: Make<'_>) {
    for (commit_within_ms, deadline_ms) in [(40_000, 41_000), (69_000, 70_000)] {
        let setting = Setting::new(make);
        let world = &setting.world;
        let made = setting.reserve(&Terms::commit_within_ms(commit_within_ms).outbox(mail()));
        let store = world.shared();
        let apply =
            setting
                .reservations
                .plan_commit(&*store, &world.partition, &setting.id, made.serial);
        let apply = block_on(apply).unwrap().batch;
        let rows = world.kind_rows();

        world.advance_ms(deadline_ms - 1);
        world.tick(&setting.engine);
        assert_eq!(world.kind_rows(), rows, "nothing a millisecond early");
        world.advance_ms(1);
        let report = world.tick(&setting.engine);
        assert_eq!(report.total.fired, 1);
        assert_eq!(setting.end(), Some(End::Abandoned));
        assert_eq!(setting.outcomes().len(), 1);
        assert!(!world.apply(apply).is_committed(), "a late apply loses");
        assert!(matches!(
            setting.commit(made.serial),
            Settlement::EndedBefore(_)
        ));
        world.tick_until_quiet(&setting.engine, 5);
        assert_eq!(setting.outcomes().len(), 1, "told once");
    }
}

/// As above, with the time bound of the commit taken away: the row's guard alone decides.
pub fn a_late_apply_loses_its_guard(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let made = setting.reserve(&terms());
    let store = world.shared();
    let plan =
        setting
            .reservations
            .plan_commit(&*store, &world.partition, &setting.id, made.serial);
    let mut apply = block_on(plan).unwrap().batch;
    assert_eq!(apply.preconditions.len(), 2);
    apply.preconditions.truncate(1);
    world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    world.tick(&setting.engine);
    assert!(!world.apply(apply).is_committed());
    assert_eq!(setting.end(), Some(End::Abandoned));
}

pub fn an_end_before_the_deadlines_commit_makes_it_lose(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let serial = setting.reserve(&terms().outbox(mail())).serial;
    world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let store = world.shared();
    let abort =
        setting
            .reservations
            .plan_abort(&*store, &world.partition, &setting.id, serial, "no");
    let abort = block_on(abort).unwrap().batch;
    let partition = world.partition.clone();
    world.store.before_commit(1, move |store, _, _| {
        assert!(
            block_on(store.apply(&partition, abort))
                .unwrap()
                .is_committed()
        );
    });
    world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.end(), Some(End::Aborted("no".to_owned())));
    assert_eq!(setting.outcomes().len(), 1);
}

pub fn many_that_share_a_deadline_and_an_outbox_are_told_each_once(make: Make<'_>) {
    let mut setting = Setting::new(make);
    for nth in 0..150 {
        setting.id = ReservationId::new(format!("seat-{nth:03}")).unwrap();
        setting.reserve(&terms().outbox(mail()));
    }
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let report = setting.world.tick_until_quiet(&setting.engine, 10);
    assert_eq!((report.total.fired, report.total.failed), (150, 0));
    let mut ids: Vec<_> = setting.outcomes().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 150);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 150);
}

pub fn a_timer_without_a_reservation_drains(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.reserve(&terms());
    let rows = world.kind_rows();
    let now_ms = world.now_ms();
    let payload = [&[1][..], &7_u64.to_be_bytes()].concat();
    let references: [&[u8]; 5] = [
        b"",
        &[b'x'; RESERVATION_ID_BYTES_MAX + 1],
        &[0xff; 512],
        b"seat-12",
        // Its own id, but the timer of an earlier one.
        b"seat-12A",
    ];
    for reference in references {
        let timer = Timer::new(RESERVATION_RECONCILE, reference.to_vec())
            .payload(payload.clone())
            .due_at(now_ms);
        world.commit(world.timers.plan_new(&timer).unwrap().batch);
    }
    let report = world.tick_until_quiet(&setting.engine, 5);
    assert_eq!((report.total.fired, report.total.failed), (5, 0));
    assert_eq!(world.kind_rows(), rows);
}

pub fn a_payload_of_another_version_is_set_aside(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let newer = [&[2][..], &7_u64.to_be_bytes()].concat();
    for payload in [Vec::new(), newer, vec![1; 10]] {
        let timer = Timer::new(RESERVATION_RECONCILE, "seat-12A")
            .payload(payload)
            .due_at(world.now_ms());
        world.commit(world.timers.plan_new(&timer).unwrap().batch);
    }
    let report = world.tick_until_quiet(&setting.engine, 5);
    assert_eq!((report.total.dead, report.total.fired), (3, 0));
}

pub fn a_row_that_does_not_decode_is_kept_and_starves_nobody(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.reserve(&terms());
    let key = setting.key();
    let sound = world.get(&key).unwrap();
    let newer = [&[2], &sound[1..]].concat();
    let mut stage = sound.to_vec();
    stage[1] = 5;
    let broken: [&[u8]; 4] = [b"", &newer, &stage, &sound[..40]];
    world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    for (nth, bytes) in broken.into_iter().enumerate() {
        world.commit(Batch::new().put(key.clone(), bytes.to_vec()));
        let mut healthy = Setting {
            world: world.clone(),
            reservations: setting.reservations.clone(),
            engine: setting.engine.clone(),
            id: setting.id.clone(),
        };
        let id = format!("healthy-{nth}");
        healthy.id = ReservationId::new(id).unwrap();
        healthy.reserve(&Terms::commit_within_ms(0).skew_ms(0));
        let report = world.tick(&setting.engine);
        assert_eq!(
            (report.total.fired, report.total.failed),
            (1, 1),
            "{bytes:?}"
        );
        assert_eq!(healthy.end(), Some(End::Abandoned));
        assert_eq!(world.get(&key).unwrap(), bytes);
        world.advance_ms(72_000);
    }
    for _ in 0..40 {
        let report = world.tick(&setting.engine);
        assert_eq!((report.total.failed, report.total.dead), (1, 0));
        world.advance_ms(72_000);
    }
    world.commit(Batch::new().put(key, sound));
    world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.end(), Some(End::Abandoned));
}

pub fn a_clock_ahead_of_the_stores_abandons_nothing_early(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let made = setting.reserve(&terms());
    world.advance_ms(30_000);
    let extended = setting.reservations.extend(
        &world.partition,
        &setting.id,
        made.serial,
        "".into(),
        COMMIT_WITHIN_MS,
    );
    block_on(extended).unwrap();
    // Both clocks are past the new deadline when the timer of the old one runs; then the store's is set
    // back between the two.
    world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let clock = world.clock.clone();
    world
        .store
        .before_commit(1, move |_, _, _| clock.jump_wall_ms(-20_000));
    world.tick(&setting.engine);
    assert!(setting.read().unwrap().is_pending());
    assert!(matches!(
        setting.commit(made.serial),
        Settlement::Settled(_)
    ));
}

/// The clock of the process is ahead all the time, past deadlines and retentions that were moved behind the
/// due of their timers: these go on to the moved time, or to that of the clock, and no run fails.
pub fn a_clock_that_stays_ahead_waits_for_the_moved_time(make: Make<'_>) {
    const AHEAD_MS: u64 = 30_000;
    let setting = Setting::new(make);
    let world = &setting.world;
    let ahead = ManualClock::new(i64::try_from(world.now_ms() + AHEAD_MS).unwrap());
    let runtime = test_runtime(&ahead);
    let mut registry = Registry::new();
    let (kind, registration) = setting.reservations.entry();
    registry.register(kind, registration).unwrap();
    let engine = Engine::new(world.shared(), runtime, registry);
    let advance_ms = |ms| {
        world.advance_ms(ms);
        ahead.advance_ms(ms);
    };

    let made = setting.reserve(&terms().kept_for_ms(AHEAD_MS));
    advance_ms(30_000);
    let extended = setting.reservations.extend(
        &world.partition,
        &setting.id,
        made.serial,
        "".into(),
        COMMIT_WITHIN_MS,
    );
    assert!(matches!(block_on(extended), Ok(Settlement::Settled(_))));
    let counts = |report: RunReport| {
        let total = report.total;
        (total.rescheduled, total.fired, total.failed)
    };
    advance_ms(11_000);
    assert_eq!(counts(world.tick(&engine)), (1, 0, 0), "to the deadline");
    advance_ms(29_999);
    assert_eq!(counts(world.tick(&engine)), (0, 0, 0));
    let settled = setting.abort(made.serial, "no");
    assert!(matches!(settled, Settlement::Settled(_)));
    advance_ms(2);
    assert_eq!(counts(world.tick(&engine)), (1, 0, 0), "to its removal");
    advance_ms(AHEAD_MS);
    assert_eq!(counts(world.tick(&engine)), (0, 0, 0));
    assert!(setting.read().is_some());
    advance_ms(1);
    assert_eq!(counts(world.tick(&engine)), (0, 1, 0));
    assert_eq!(setting.read(), None);
}

pub fn an_outbox_that_does_not_decode_keeps_the_reservation_pending(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.reserve(&terms().outbox(OutboxName::new("mail").unwrap()));
    let outbox = bytes::Bytes::from_static(b"b\0\x08smail");
    world.commit(Batch::new().put(outbox.clone(), "nonsense"));
    world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    assert_eq!(world.tick(&setting.engine).total.failed, 1);
    assert!(
        setting.read().unwrap().is_pending(),
        "no end without its outcome"
    );
    world.commit(Batch::new().delete(outbox));
    world.advance_ms(6_000);
    world.tick(&setting.engine);
    assert_eq!(setting.end(), Some(End::Abandoned));
    assert_eq!(setting.outcomes().len(), 1);
}

pub fn a_fire_in_doubt_ends_it_once(make: Make<'_>) {
    for is_written in [true, false] {
        let setting = Setting::new(make);
        let world = &setting.world;
        setting.reserve(&terms().outbox(mail()));
        world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
        let fault = if is_written {
            CommitFault::AnswerLost
        } else {
            CommitFault::NotWritten(StoreErrorKind::Unknown)
        };
        world.store.fail_commit(1, fault);
        world.tick(&setting.engine);
        world.advance_ms(60_000);
        world.tick_until_quiet(&setting.engine, 5);
        assert_eq!(setting.end(), Some(End::Abandoned));
        assert_eq!(setting.outcomes().len(), 1, "written: {is_written}");
        let listed = world.timer_keys();
        let own = listed
            .iter()
            .filter(|key| key[2] == RESERVATION_RECONCILE.0);
        assert_eq!(own.count(), 0);
    }
}

/// Counts the seats that were given back; fails for a reservation whose detail is `broken`.
struct GiveBack;

impl OnAbandon for GiveBack {
    fn effects<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        reservation: &'a Reservation,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        Box::pin(async move {
            if reservation.detail == "broken" {
                return Err(HandlerError::new("no"));
            }
            let key = Key::from_static(b"free");
            let free = ctx.get(&key).await?;
            let given = free.as_ref().map_or(0, |free| free[0]) + 1;
            Ok(Batch::new()
                .require_unchanged(key.clone(), free)
                .put(key, vec![given]))
        })
    }
}

pub fn what_an_abandonment_is_to_write_is_one_with_it(make: Make<'_>) {
    let mut setting = Setting::new(make);
    let reservations = setting.reservations.clone().on_abandon(GiveBack);
    setting.engine = setting.world.engine_of([reservations.entry()]);
    for nth in 0..100 {
        setting.id = ReservationId::new(format!("seat-{nth:03}")).unwrap();
        let detail = if nth == 50 { "broken" } else { "sound" };
        setting.reserve(&terms().outbox(mail()).detail(detail));
    }
    setting.id = ReservationId::new("seat-007").unwrap();
    let serial = setting.read().unwrap().serial;
    setting.abort(serial, "no");
    setting.world.advance_ms(COMMIT_WITHIN_MS + SKEW_MS);
    let report = setting.world.tick_until_quiet(&setting.engine, 10);
    assert_eq!((report.total.fired, report.total.failed), (99, 1));
    assert_eq!(setting.world.get(&"free".into()).unwrap(), vec![98]);
    assert_eq!(setting.outcomes().len(), 99);
    setting.id = ReservationId::new("seat-050").unwrap();
    assert!(setting.read().unwrap().is_pending(), "its effects failed");
}

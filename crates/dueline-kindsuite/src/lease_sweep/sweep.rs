//! The sweep: what goes, what is kept, and who wins.

use std::sync::{Arc, Mutex};

use dueline::kinds::lease_sweep::{
    Drain, Grant, LEASE_NAME_BYTES_MAX, LEASE_SWEEP, LeaseSweep, Renewal,
};
use dueline::store::{Batch, Write};
use dueline::timers::{Policy, TickBudget, Timer, run_due};
use dueline_testkit::block_on;

use super::setting::{Answer, Setting, TERM_MS, WORKING, vacant};
use crate::Make;

pub fn expiry_deletes_lease_and_timer_in_one_batch(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.grant("ann");
    let lease_key = world.kind_rows()[1].0.clone();
    assert_eq!(lease_key[3], b'l');
    world.advance_ms(TERM_MS - 1);
    world.tick(&setting.engine);
    assert_eq!(setting.source.asked(), 0, "nothing a millisecond early");
    assert_eq!(setting.held().epoch, 1);

    world.advance_ms(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&seen);
    let key = lease_key.clone();
    world.store.on_commit(move |_, group| {
        for batch in &group.batches {
            if batch.writes.contains(&Write::Delete(key.clone())) {
                writer.lock().unwrap().push(batch.clone());
            }
        }
    });
    let report = world.tick(&setting.engine);
    assert_eq!((report.total.claimed, report.total.fired), (1, 1));
    let batches = seen.lock().unwrap();
    assert_eq!(batches.len(), 1);
    let deletes = batches[0].writes.iter();
    let timers = deletes.filter(
        |write| matches!(write, Write::Delete(key) if key[0] == b'w' && key[2] == LEASE_SWEEP.0),
    );
    assert_eq!(timers.count(), 1, "lease and timer go together");
    assert!(world.timer_keys().is_empty());
    assert_eq!(setting.state(), vacant(1, 0));
    assert_eq!(world.kind_rows().len(), 1, "the epoch stays");
}

pub fn a_timer_without_a_lease_drains(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let lease = setting.grant("ann");
    let rows = world.kind_rows();
    let references: [&[u8]; 7] = [
        b"",
        &[b'x'; LEASE_NAME_BYTES_MAX + 1],
        &[0xff; 512],
        b"leader\0",
        b"leade",
        b"LEADER",
        &rows[0].0,
    ];
    let now_ms = world.now_ms();
    for reference in references {
        let timer = Timer::new(LEASE_SWEEP, reference.to_vec()).due_at(now_ms);
        world.commit(world.timers.plan_new(&timer).unwrap().batch);
    }
    let report = world.tick_until_quiet(&setting.engine, 10);
    assert_eq!((report.total.fired, report.total.failed), (7, 0));
    assert_eq!(setting.source.asked(), 0);
    assert_eq!(world.kind_rows(), rows, "no lease was touched");
    assert_eq!(setting.held(), lease);
}

pub fn a_stale_timer_drains(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let first = setting.grant("ann");
    world.advance_ms(10_000);
    setting.renew(first.epoch);
    world.advance_ms(TERM_MS - 10_000);
    let report = world.tick(&setting.engine);
    assert_eq!((report.total.fired, report.total.rescheduled), (1, 0));
    assert_eq!(setting.source.asked(), 0);
    assert_eq!(setting.held().epoch, first.epoch);
    assert_eq!(world.timer_keys().len(), 1, "the renewal's");
    world.advance_ms(10_000);
    world.tick(&setting.engine);
    assert_eq!(setting.state(), vacant(1, 0));
}

/// A timer of the lease's own name that is long past its due, as one that a user has scheduled.
pub fn a_foreign_timer_of_the_name_drains(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.grant("ann");
    let foreign = Timer::new(LEASE_SWEEP, "leader")
        .due_at(world.now_ms() - 5_000)
        .named();
    block_on(
        world
            .timers
            .schedule(&world.partition, foreign, Policy::Replace),
    )
    .unwrap();
    let report = world.tick(&setting.engine);
    assert_eq!(report.total.fired, 1);
    assert_eq!(setting.held().epoch, 1);
    assert_eq!(world.timer_keys().len(), 1);
}

pub fn a_renewal_before_the_sweep_commits_makes_it_lose(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let lease = setting.grant("ann");
    world.advance_ms(TERM_MS);
    let store = world.shared();
    let plan = setting.leases.plan_renew(
        &*store,
        &world.partition,
        &setting.name,
        lease.epoch,
        TERM_MS,
    );
    let renewal = block_on(plan).unwrap();
    let Renewal::Renewed(renewed) = renewal.outcome else {
        panic!("it is not swept yet");
    };
    let partition = world.partition.clone();
    // The first commit is the claim, the second the sweep.
    world.store.before_commit(2, move |store, _, _| {
        assert!(
            block_on(store.apply(&partition, renewal.batch))
                .unwrap()
                .is_committed()
        );
    });
    let report = world.tick(&setting.engine);
    assert_eq!(setting.source.asked(), 1);
    assert_eq!(
        (report.total.fired, report.total.failed),
        (1, 0),
        "it drains"
    );
    assert_eq!(setting.held(), renewed);
    assert_eq!(world.timer_keys().len(), 1);
    world.advance_ms(TERM_MS);
    world.tick(&setting.engine);
    assert_eq!(setting.state(), vacant(1, 0));
}

pub fn a_clock_that_was_set_back_keeps_the_lease_to_its_end(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let lease = setting.grant("ann");
    world.advance_ms(TERM_MS);
    let clock = world.clock.clone();
    // Between the claim and the call the clock turns out to have been wrong.
    let mut tick = block_on(run_due(
        &setting.engine,
        &world.partition,
        TickBudget::default(),
    ));
    clock.jump_wall_ms(-10_000);
    let call = tick.calls.pop().unwrap();
    block_on(async { setting.engine.settle(call.run().await).await });
    assert_eq!(setting.source.asked(), 0, "it has not expired");
    assert_eq!(setting.held().expires_at_ms, lease.expires_at_ms);
    world.tick(&setting.engine);
    assert_eq!(setting.held().epoch, 1);
    world.advance_ms(10_001);
    world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.state(), vacant(1, 0));
}

pub fn a_clock_ahead_of_the_stores_ends_no_lease_early(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.grant("ann");
    setting.source.says(WORKING);
    world.advance_ms(TERM_MS);
    world.tick(&setting.engine);
    setting.source.says(Answer::Drain(Drain::Drained));
    // The claim was in time by both clocks; then the store's is set back behind the expiry.
    world.advance_ms(10_000);
    let clock = world.clock.clone();
    world
        .store
        .before_commit(2, move |_, _, _| clock.jump_wall_ms(-20_000));
    world.tick(&setting.engine);
    assert_eq!(
        setting.held().epoch,
        1,
        "by the store's clock it has not expired"
    );
    world.advance_ms(60_000);
    world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.state(), vacant(1, 0));
}

pub fn work_that_is_left_keeps_the_lease_and_raises_its_watermark(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let anns = setting.grant("ann");
    world.advance_ms(TERM_MS);
    for (told, highest) in [(5, 5), (3, 5), (9, 9), (0, 9)] {
        setting
            .source
            .says(Answer::Drain(Drain::Working { watermark: told }));
        let asked = setting.source.asked();
        let report = world.tick(&setting.engine);
        assert_eq!(report.total.rescheduled, 1);
        let lease = setting.held();
        assert_eq!((lease.watermark, lease.epoch), (highest, anns.epoch));
        assert_eq!(lease.expires_at_ms, anns.expires_at_ms);
        world.advance_ms(9_999);
        world.tick(&setting.engine);
        assert_eq!(
            setting.source.asked(),
            asked + 1,
            "asked again after 10 s, not before"
        );
        assert!(matches!(setting.ask("bob"), Grant::Held(_)));
        world.advance_ms(1);
    }
    setting.source.says(Answer::Drain(Drain::Drained));
    world.tick(&setting.engine);
    assert_eq!(setting.state(), vacant(1, 9));
    assert_eq!(setting.grant("bob").watermark, 9, "the next holder is told");
}

/// A recheck that would lie behind the latest due is the latest due, not a run that fails.
pub fn the_longest_recheck_is_the_latest_due(make: Make<'_>) {
    let mut setting = Setting::new(make);
    let sweep = LeaseSweep::new(setting.source.clone()).recheck_ms(u64::MAX);
    setting.engine = setting.world.engine_of([sweep.entry()]);
    let anns = setting.grant("ann");
    setting.source.says(WORKING);
    setting.world.advance_ms(TERM_MS);
    let report = setting.world.tick(&setting.engine);
    assert_eq!((report.total.rescheduled, report.total.failed), (1, 0));
    // Who knows better than to wait for it renews or releases.
    setting.source.says(Answer::Drain(Drain::Drained));
    assert!(matches!(setting.renew(anns.epoch), Renewal::Renewed(_)));
    setting.world.advance_ms(TERM_MS);
    setting.world.tick(&setting.engine);
    assert_eq!(setting.state(), vacant(1, 0));
}

pub fn a_lease_that_is_kept_long_is_metered_once_a_check(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.grant("ann");
    setting.source.says(WORKING);
    world.advance_ms(TERM_MS + 60_000);
    world.tick(&setting.engine);
    assert_eq!(setting.source.kept_long(), [], "not over 60 s");
    world.advance_ms(10_000);
    world.tick(&setting.engine);
    assert_eq!(setting.source.kept_long(), [(1, 70_000)]);
    world.tick(&setting.engine);
    assert_eq!(setting.source.kept_long().len(), 1);
    assert_eq!(setting.held().epoch, 1, "it stays");
    world.advance_ms(10_000);
    world.tick(&setting.engine);
    assert_eq!(setting.source.kept_long(), [(1, 70_000), (1, 80_000)]);
    setting.source.says(Answer::Drain(Drain::Drained));
    world.advance_ms(10_000);
    world.tick(&setting.engine);
    assert_eq!(setting.source.kept_long().len(), 2, "it has gone");
}

pub fn a_source_that_gives_no_answer_keeps_the_lease_for_ever(make: Make<'_>) {
    for answer in [
        Answer::Drain(Drain::Missing),
        Answer::Unreachable,
        Answer::Corrupt,
    ] {
        let setting = Setting::new(make);
        let world = &setting.world;
        let lease = setting.grant("ann");
        setting.source.says(answer);
        world.advance_ms(TERM_MS);
        let rows = world.kind_rows();
        for attempt in 1..=40 {
            let report = world.tick(&setting.engine);
            assert_eq!(report.total.failed, 1, "{answer:?}, attempt {attempt}");
            assert_eq!(world.kind_rows(), rows, "kept as it was");
            assert_eq!(world.timer_keys().len(), 1);
            world.advance_ms(72_000);
        }
        setting.source.says(Answer::Drain(Drain::Drained));
        world.tick_until_quiet(&setting.engine, 5);
        assert_eq!(setting.state(), vacant(lease.epoch, 0));
        assert!(world.timer_keys().is_empty());
    }
}

pub fn a_row_that_does_not_decode_is_kept_and_tried_again(make: Make<'_>) {
    for (place, letter) in [(1, b'l'), (0, b'e')] {
        let setting = Setting::new(make);
        let world = &setting.world;
        setting.grant("ann");
        let (key, sound) = world.kind_rows()[place].clone();
        assert_eq!(key[3], letter);
        let versions = [&[2], &sound[1..]].concat();
        let broken: [&[u8]; 4] = [b"", &sound[..sound.len().min(9) - 1], &versions, &[1, 7, 7]];
        for bytes in broken {
            world.commit(Batch::new().put(key.clone(), bytes.to_vec()));
            world.advance_ms(100_000);
            let report = world.tick(&setting.engine);
            assert_eq!(
                (report.total.fired, report.total.failed),
                (0, 1),
                "{bytes:?}"
            );
            assert_eq!(world.get(&key).unwrap(), bytes, "kept as it was");
            let read = setting.leases.read(&world.partition, &setting.name);
            assert!(block_on(read).is_err());
        }
        world.commit(Batch::new().put(key, sound));
        world.advance_ms(100_000);
        world.tick_until_quiet(&setting.engine, 5);
        assert_eq!(setting.state(), vacant(1, 0));
    }
}

pub fn a_lease_without_its_epoch_is_kept(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.grant("ann");
    let (epoch_key, _) = world.kind_rows()[0].clone();
    world.commit(Batch::new().delete(epoch_key));
    world.advance_ms(TERM_MS);
    let report = world.tick(&setting.engine);
    assert_eq!((report.total.fired, report.total.failed), (0, 1));
    assert_eq!(world.kind_rows().len(), 1);
}

pub fn two_timers_of_one_due_sweep_once(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let lease = setting.grant("ann");
    let twin = Timer::new(LEASE_SWEEP, "leader").due_at(lease.expires_at_ms);
    world.commit(world.timers.plan_new(&twin).unwrap().batch);
    setting.source.says(WORKING);
    world.advance_ms(TERM_MS);
    world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(
        world.timer_keys().len(),
        1,
        "one goes on, the other has drained"
    );
    setting.source.says(Answer::Drain(Drain::Drained));
    world.advance_ms(10_000);
    world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.state(), vacant(1, 0));
}

//! A store without room: no timer dies of it, back-off is kept, and everything fires when there is
//! room again.

use dueline::memory::MemoryStore;
use dueline::store::{Batch, Group, StoreErrorKind};
use dueline::timers::{Fired, Registration, TickBudget};
use dueline_testkit::{CommitFault, block_on};

use crate::world::handlers::{Calls, Seen, notes, says};
use crate::world::{A, B, C, World};

/// Puts 300 bytes under the reference.
fn grows(seen: &Seen) -> impl dueline::timers::TimerHandler + use<> {
    let seen = seen.clone();
    says(move |timer| {
        seen.note("run");
        Fired::Done(Batch::new().put(timer.reference().clone(), vec![1; 300]))
    })
}

#[test]
fn a_store_at_its_limit_sets_timers_back_from_the_reserve_without_an_attempt() {
    for group_max in [1, 16] {
        let world = World::on(1_000, |store: MemoryStore| store.with_capacity_limit(6_000));
        let seen = Seen::default();
        let engine = world.engine([
            (A, Registration::inline(grows(&seen)).group_max(group_max)),
            (B, Registration::inline(notes(&seen)).group_max(group_max)),
        ]);
        for n in 0..20 {
            world.put_named(A, &format!("x{n}"), 900);
        }
        world.put_named(B, "shrinks", 900);
        let filler = 6_000 - usize::try_from(world.memory.bytes()).unwrap() - 6;
        world.commit(Batch::new().put("filler", vec![0; filler]));
        let mut attempts = 0;
        while attempts < 30 {
            let report = world.woken_tick(&engine, TickBudget::default()).report;
            assert_eq!(report.total.held, 0);
            attempts += u64::from(report.total.failed > 0);
            world.clock.advance_ms(6_000);
        }
        assert!(world.dead().is_empty());
        let timers = world.timers();
        assert_eq!(timers.len(), 20, "the one that only deletes has fired");
        for (key, row) in &timers {
            assert_eq!(row.header.attempt, 0, "{key:?}");
            let error = &row.header.failure.as_ref().unwrap().error;
            assert!(error.contains("full"), "{error}");
        }
        world.check_names();
        world.commit(Batch::new().delete("filler"));
        world.clock.advance_ms(100_000);
        let report = world.woken_tick(&engine, TickBudget::default()).report;
        assert!(report.total.fired >= 10, "{report:?}");
    }
}

#[test]
fn a_full_store_runs_each_handler_of_a_group_a_few_times_not_once_per_member() {
    let world = World::on(1_000, |store: MemoryStore| {
        store.with_capacity_limit(12_000)
    });
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(grows(&seen)).group_max(64))]);
    for n in 0..64 {
        world.put(A, &format!("x{n}"), 900);
    }
    let filler = 12_000 - usize::try_from(world.memory.bytes()).unwrap() - 6;
    world.commit(Batch::new().put("filler", vec![0; filler]));
    let report = world.run_with(&engine, TickBudget::unlimited());
    assert_eq!(report.total.failed, 64);
    assert!(seen.len() <= 4 * 64, "{} runs of 64 handlers", seen.len());
}

#[test]
fn a_disk_that_refuses_every_commit_for_thirty_attempts_kills_no_timer() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen)).group_max(8)),
        (B, Registration::detached(Calls::noting(&seen))),
        (C, Registration::inline(crate::world::handlers::fails("no"))),
    ]);
    for n in 0..10 {
        world.put_named(A, &format!("a{n}"), 900);
        world.put_named(B, &format!("b{n}"), 900);
    }
    world.put_named(C, "c", 900);
    let before = world.memory.rows(&world.partition);
    world
        .store
        .fail_commits_with(|_, _: &Group| Some(CommitFault::NotWritten(StoreErrorKind::Full)));
    for _ in 0..30 {
        let tick = world.woken_tick(&engine, TickBudget::default());
        assert!(tick.report.held_back && tick.report.store_full);
        assert_eq!(tick.report.total.progressed(), 0);
        assert!(tick.calls.is_empty());
        world.clock.advance_ms(600_000);
    }
    assert_eq!(
        world.memory.rows(&world.partition),
        before,
        "nothing moved, nothing died"
    );
    world.store.heal();
    seen.take();
    let tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!((tick.report.total.fired, tick.report.total.failed), (10, 1));
    assert_eq!(tick.calls.len(), 10);
    for call in tick.calls {
        assert_eq!(call.claim().timer().attempt(), 1);
        assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
    }
    world.check_names();
}

#[test]
fn a_settle_on_a_full_store_is_set_back_and_its_attempt_given_back() {
    let world = World::on(1_000, |store: MemoryStore| store.with_capacity_limit(2_000));
    let seen = Seen::default();
    let calls = Calls::noting(&seen).settle(|timer, _| {
        Ok(Fired::Done(
            Batch::new().put(timer.reference().clone(), vec![1; 300]),
        ))
    });
    let engine = world.engine([(A, Registration::detached(calls))]);
    world.put_named(A, "x", 900);
    let filler = 2_000 - usize::try_from(world.memory.bytes()).unwrap() - 6;
    world.commit(Batch::new().put("filler", vec![0; filler]));
    for _ in 0..30 {
        let tick = world.woken_tick(&engine, TickBudget::default());
        for call in tick.calls {
            assert_eq!(call.claim().timer().attempt(), 1);
            let counts = block_on(engine.settle(block_on(call.run())));
            assert_eq!((counts.failed, counts.dead, counts.held), (1, 0, 0));
        }
        world.check_names();
        world.clock.advance_ms(6_000);
    }
    assert_eq!(seen.len(), 30);
    assert_eq!(world.timers()[0].1.header.attempt, 0);
    world.commit(Batch::new().delete("filler"));
    for call in world.woken_tick(&engine, TickBudget::default()).calls {
        assert_eq!(block_on(engine.settle(block_on(call.run()))).fired, 1);
    }
    assert!(world.get("x").is_some());
}

#[test]
fn undecodable_and_malformed_rows_wait_on_a_full_store_and_hide_nothing() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([
        (A, Registration::inline(notes(&seen))),
        (B, Registration::inline(notes(&seen))),
    ]);
    let key = world.put_named(A, "x", 900);
    world.commit(
        Batch::new()
            .put(key, "\u{63}bad header")
            .put(b"w\0\x10\0".to_vec(), "malformed"),
    );
    world.put(B, "y", 900);
    world.store.fail_commits_with(|_, group: &Group| {
        group
            .batches
            .iter()
            .any(Batch::has_put)
            .then_some(CommitFault::NotWritten(StoreErrorKind::Full))
    });
    for _ in 0..3 {
        let report = world.run(&engine);
        assert!(report.held_back);
        assert_eq!((report.quarantined, report.total.dead), (0, 0));
    }
    assert_eq!(seen.take(), ["y"]);
    world.store.heal();
    let report = world.run(&engine);
    assert_eq!((report.quarantined, report.total.dead), (1, 1));
}

#[test]
fn a_handler_cannot_reach_into_the_reserve() {
    let world = World::on(1_000, |store: MemoryStore| store.with_capacity_limit(2_000));
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| {
            let mut batch = Batch::new().put("effect", vec![1; 300]);
            batch.uses_reserve = true;
            Fired::Done(batch)
        })),
    )]);
    world.put(A, "x", 900);
    let filler = 2_000 - usize::try_from(world.memory.bytes()).unwrap() - 6;
    world.commit(Batch::new().put("filler", vec![0; filler]));
    let report = world.run(&engine);
    assert_eq!((report.total.fired, report.total.failed), (0, 1));
    assert_eq!(world.get("effect"), None);
}

//! Kicks, replacements and cancels that fall into a run: before its read, between read and commit,
//! after it, and with the timer retrying, claimed or dead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dueline::rows::class;
use dueline::store::{Batch, Key, ScanRange};
use dueline::timers::{
    Fired, HandlerError, Policy, Registration, RetryPolicy, ScheduleOutcome, TickBudget, Timer,
    TimerHandler,
};
use dueline_testkit::{block_on, handler};

use crate::world::handlers::{Calls, Seen, notes};
use crate::world::{A, World};

/// What happens once, when a run passes a point.
#[derive(Clone, Default)]
struct Hooks(Arc<Mutex<BTreeMap<&'static str, Hook>>>);

type Hook = Box<dyn FnOnce() + Send>;

impl Hooks {
    fn at(&self, point: &'static str, what: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().insert(point, Box::new(what));
    }

    fn pass(&self, point: &'static str) {
        let hook = self.0.lock().unwrap().remove(point);
        if let Some(hook) = hook {
            hook();
        }
    }
}

/// Takes every row of the queue `q/` and notes it; fails as long as the row `fail` is there.
fn drains(hooks: &Hooks) -> impl TimerHandler + use<> {
    let hooks = hooks.clone();
    handler(move |ctx, _| {
        let hooks = hooks.clone();
        Box::pin(async move {
            hooks.pass("before the read");
            let queue = ctx.scan(&ScanRange::new("q/", "q0", 100)).await?;
            let fail = ctx.get(&"fail".into()).await?.is_some();
            hooks.pass("after the read");
            if fail {
                return Err(HandlerError::new("no"));
            }
            let mut batch = Batch::new();
            for (key, _) in queue.rows {
                let handled = [b"handled/", &key[2..]].concat();
                batch = batch.delete(key).put(handled, "yes");
            }
            Ok(Fired::Done(batch))
        })
    })
}

/// What a writer does: a row and a kick in one batch.
fn append_and_kick(world: &World, row: &'static str) {
    let verbs = world.verbs();
    let timer = Timer::new(A, "drain").due_at(world.clock_ms()).named();
    for _ in 0..8 {
        let plan = block_on(verbs.plan(&world.partition, &timer, Policy::KeepEarliest)).unwrap();
        let batch = Batch::new()
            .put(format!("q/{row}"), "work")
            .append(plan.batch);
        let store = verbs.store();
        if block_on(store.apply(&world.partition, batch))
            .unwrap()
            .is_committed()
        {
            return;
        }
    }
    panic!("the kick did not get through");
}

fn handled(world: &World) -> Vec<String> {
    let range = ScanRange::new("handled/", "handled0", 100);
    let page = block_on(dueline::store::ReadStore::scan(
        world.memory.as_ref(),
        &world.partition,
        &range,
    ));
    let name = |key: &Key| String::from_utf8_lossy(&key[8..]).into_owned();
    page.unwrap()
        .rows
        .iter()
        .map(|(key, _)| name(key))
        .collect()
}

/// Runs until nothing is pending, then checks that both rows were handled.
fn check_all_handled(world: &World, engine: &dueline::timers::Engine, case: &str) {
    for _ in 0..5 {
        world.clock.advance_ms(20_000);
        let _tick = world.woken_tick(engine, TickBudget::default());
        world.check_names();
    }
    assert_eq!(handled(world), ["first", "second"], "{case}");
    assert!(world.timers().is_empty(), "{case}");
    assert!(world.rows(class::NAME).is_empty(), "{case}");
}

#[test]
fn a_row_appended_with_a_kick_is_handled_in_every_interleaving() {
    for group_max in [1, 64] {
        for cautious in [false, true] {
            for point in [
                "before the read",
                "after the read",
                "before the commit",
                "after",
            ] {
                let case = format!("{point}, group {group_max}, cautious {cautious}");
                let world = World::at(1_000);
                let hooks = Hooks::default();
                let engine =
                    world.engine([(A, Registration::inline(drains(&hooks)).group_max(group_max))]);
                if cautious {
                    world.store.set_unclean_opened_at_ms(Some(1_000_000));
                }
                append_and_kick(&world, "first");
                let other = world.clone();
                let write = move || append_and_kick(&other, "second");
                match point {
                    "before the commit" => {
                        let nth = if cautious { 2 } else { 1 };
                        world.store.before_commit(nth, move |_, _, _| write());
                    }
                    "after" => {
                        world.run(&engine);
                        write();
                    }
                    point => hooks.at(point, write),
                }
                let _tick = world.woken_tick(&engine, TickBudget::default());
                check_all_handled(&world, &engine, &case);
            }
        }
    }
}

#[test]
fn a_kick_of_a_retrying_timer_is_handled_at_its_next_attempt_not_before() {
    for point in [
        "idle",
        "before the read",
        "after the read",
        "before the commit",
    ] {
        let world = World::at(1_000);
        let hooks = Hooks::default();
        let engine = world.engine([(A, Registration::inline(drains(&hooks)))]);
        append_and_kick(&world, "first");
        world.commit(Batch::new().put("fail", "yes"));
        world.run(&engine);
        let before = world.timers().pop().unwrap();
        let other = world.clone();
        let write = move || append_and_kick(&other, "second");
        if point == "idle" {
            write();
            let after = world.timers().pop().unwrap();
            assert_eq!(
                after.0.due_ms, before.0.due_ms,
                "a kick does not shorten a back-off"
            );
            assert_eq!(after.1.header.attempt, 1);
            assert!(after.0.generation > before.0.generation);
            assert_eq!(world.run(&engine).total.failed, 0);
        } else {
            world.clock.advance_ms(10_000);
            match point {
                "before the commit" => world.store.before_commit(1, move |_, _, _| write()),
                point => hooks.at(point, write),
            }
            assert_eq!(world.run(&engine).total.raced, 1, "{point}");
        }
        world.commit(Batch::new().delete("fail"));
        check_all_handled(&world, &engine, point);
    }
}

#[test]
fn a_kick_of_a_dead_timer_brings_it_back_to_life() {
    let world = World::at(1_000);
    let once = RetryPolicy {
        attempts_max: Some(1),
        ..RetryPolicy::default()
    };
    let engine = world.engine([(
        A,
        Registration::inline(drains(&Hooks::default())).retry(once),
    )]);
    append_and_kick(&world, "first");
    world.commit(Batch::new().put("fail", "yes"));
    assert_eq!(world.run(&engine).total.dead, 1);
    world.commit(Batch::new().delete("fail"));
    append_and_kick(&world, "second");
    assert!(world.dead().is_empty(), "the dead row went with the kick");
    check_all_handled(&world, &engine, "dead");
}

/// The kick that meets the last failed attempt just before it is buried.
#[test]
fn a_kick_that_races_the_death_of_its_timer_is_not_buried_with_it() {
    let world = World::at(1_000);
    let once = RetryPolicy {
        attempts_max: Some(1),
        ..RetryPolicy::default()
    };
    let engine = world.engine([(
        A,
        Registration::inline(drains(&Hooks::default())).retry(once),
    )]);
    append_and_kick(&world, "first");
    world.commit(Batch::new().put("fail", "yes"));
    let other = world.clone();
    world.store.before_commit(1, move |_, _, _| {
        other.commit(Batch::new().delete("fail"));
        append_and_kick(&other, "second");
    });
    let report = world.run(&engine);
    assert_eq!((report.total.dead, report.total.raced), (0, 1));
    check_all_handled(&world, &engine, "dying");
}

#[test]
fn a_kick_of_a_claimed_timer_makes_the_call_in_progress_settle_nothing() {
    for point in ["before the call", "after the call", "before the settle"] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::detached(Calls::noting(&seen)))]);
        world.kick(A, "x", 900);
        let mut calls = world.woken_tick(&engine, TickBudget::default()).calls;
        let call = calls.pop().unwrap();
        if point == "before the call" {
            world.kick(A, "x", 1_000);
        }
        let finished = block_on(call.run());
        if point == "after the call" {
            world.kick(A, "x", 1_000);
        }
        if point == "before the settle" {
            let other = world.clone();
            world.store.before_commit(1, move |_, _, _| {
                other.kick(A, "x", 1_000);
            });
        }
        let counts = block_on(engine.settle(finished));
        assert_eq!((counts.raced, counts.fired), (1, 0), "{point}");
        assert_eq!(world.get("x"), None, "{point}");
        world.check_names();
        // The kick is at its own due, not at the end of the claim.
        let mut calls = world.woken_tick(&engine, TickBudget::default()).calls;
        let counts = block_on(engine.settle(block_on(calls.pop().unwrap().run())));
        assert_eq!((counts.fired, seen.len()), (1, 2), "{point}");
        assert!(world.timers().is_empty());
    }
}

#[test]
fn scheduling_the_same_timer_again_while_it_runs_keeps_the_new_request() {
    for policy in [Policy::Replace, Policy::KeepEarliest] {
        for point in ["before the read", "after the read"] {
            let world = World::at(1_000);
            let hooks = Hooks::default();
            let engine = world.engine([(A, Registration::inline(drains(&hooks)))]);
            // The very same request: due, reference and payload.
            let timer = Timer::new(A, "drain").due_at(900).payload("same").named();
            let first = world.schedule(timer.clone(), policy);
            let other = world.clone();
            let again = timer.clone();
            hooks.at(point, move || {
                let second = other.schedule(again, policy);
                assert_eq!(second.outcome, ScheduleOutcome::Replaced);
                assert_ne!(second.generation, first.generation);
            });
            let report = world.run(&engine);
            assert_eq!((report.total.raced, report.total.fired), (1, 0));
            assert_eq!(world.timers().len(), 1, "{point}: the new request is there");
            assert_eq!(world.run(&engine).total.fired, 1);
            assert!(world.memory.rows(&world.partition).is_empty());
        }
    }
}

#[test]
fn two_kicks_for_the_same_work_are_one_timer_and_one_run() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let verbs = world.verbs();
    let timer = Timer::new(A, "work").due_at(1_000).named();
    // Both have planned before either has committed.
    let plans = [0, 1]
        .map(|_| block_on(verbs.plan(&world.partition, &timer, Policy::KeepEarliest)).unwrap());
    let mut lost = 0;
    for plan in plans {
        let outcome = block_on(verbs.store().apply(&world.partition, plan.batch)).unwrap();
        if !outcome.is_committed() {
            lost += 1;
            world.kick(A, "work", 1_000);
        }
    }
    assert_eq!((lost, world.timers().len()), (1, 1));
    let report = world.run(&engine);
    assert_eq!(
        (report.total.fired, report.total.failed, report.total.raced),
        (1, 0, 0)
    );
    assert_eq!(seen.len(), 1);
}

#[test]
fn ten_thousand_schedules_of_one_name_during_ticks_fire_once_per_final_due() {
    let world = World::at(1_000_000);
    let fired = Seen::default();
    let noted = fired.clone();
    let engine = world.engine([(
        A,
        Registration::inline(handler(move |_, timer| {
            noted.note("run");
            let key = [b"fired/", &timer.payload()[..]].concat();
            Box::pin(async move {
                Ok(Fired::Done(
                    Batch::new().require_absent(key.clone()).put(key, "once"),
                ))
            })
        })),
    )]);
    let schedule = |world: &World, n: u32| {
        let due_ms = world.clock_ms() - u64::from(n % 5);
        let timer = Timer::new(A, "name")
            .due_at(due_ms)
            .payload(n.to_string())
            .named();
        world.schedule(timer, Policy::Replace)
    };
    let mut final_ones = Vec::new();
    let mut n = 0;
    while n < 10_000 {
        for _ in 0..n % 7 + 1 {
            schedule(&world, n);
            n += 1;
        }
        let races = n % 3 == 0;
        if races {
            let (other, m) = (world.clone(), n);
            n += 1;
            world.store.before_commit(1, move |_, _, _| {
                schedule(&other, m);
            });
        }
        let report = world.run(&engine);
        assert_eq!(
            (report.total.fired, report.total.raced),
            if races { (0, 1) } else { (1, 0) }
        );
        if races {
            assert_eq!(world.run(&engine).total.fired, 1);
        }
        final_ones.push(n - 1);
        world.check_names();
        assert!(world.timers().is_empty());
        world.clock.advance_ms(1);
    }
    let mut marks = 0;
    for last in &final_ones {
        let mark = world.get(format!("fired/{last}"));
        assert!(
            mark.is_some(),
            "schedule {last} was the last before its tick"
        );
        marks += 1;
    }
    let all = world
        .memory
        .rows(&world.partition)
        .iter()
        .filter(|(key, _)| key.starts_with(b"fired/"))
        .count();
    assert_eq!(all, marks, "and no other has fired");
}

#[test]
fn an_acknowledged_cancel_is_final_whatever_runs() {
    for point in ["before the read", "after the read", "before the commit"] {
        let world = World::at(1_000);
        let hooks = Hooks::default();
        let engine = world.engine([(A, Registration::inline(drains(&hooks)))]);
        append_and_kick(&world, "first");
        let other = world.clone();
        let cancel = move || {
            let verbs = other.verbs();
            let done = block_on(verbs.cancel(&other.partition, A, &"drain".into(), None));
            assert!(done.unwrap().is_some());
        };
        match point {
            "before the commit" => world.store.before_commit(1, move |_, _, _| cancel()),
            point => hooks.at(point, cancel),
        }
        let report = world.run(&engine);
        assert_eq!((report.total.raced, report.total.fired), (1, 0), "{point}");
        assert_eq!(handled(&world), Vec::<String>::new(), "{point}");
        assert!(world.timers().is_empty());
        assert!(world.rows(class::NAME).is_empty());
    }
}

//! The engine's own moves never overwrite: not a changed timer, not an occupied place, not a name.

use dueline::Bytes;
use dueline::rows::{DeadKey, NameKey, NameRow, NameState, TimerKey, TimerRow};
use dueline::store::{Batch, Write};
use dueline::timers::{Registration, RetryPolicy};
use dueline_testkit::block_on;

use crate::world::handlers::{Seen, fails, notes};
use crate::world::{A, World};

fn retry() -> RetryPolicy {
    RetryPolicy {
        jitter_percent: 0,
        ..RetryPolicy::default()
    }
}

#[test]
fn a_retry_whose_place_is_taken_goes_one_millisecond_later() {
    for group_max in [1, 8] {
        let world = World::at(1_000);
        let engine = world.engine([(
            A,
            Registration::inline(fails("no"))
                .retry(retry())
                .group_max(group_max),
        )]);
        let old = world.put_named(A, "x", 900);
        let occupied = TimerKey {
            due_ms: 6_000,
            ..TimerKey::decode(&old).unwrap()
        };
        world.commit(Batch::new().put(occupied.encode(), TimerRow::default().encode()));
        assert_eq!(world.run(&engine).total.failed, 1);
        assert_eq!(
            world.get(occupied.encode()).unwrap(),
            TimerRow::default().encode()
        );
        let dues: Vec<u64> = world.timers().iter().map(|(key, _)| key.due_ms).collect();
        assert_eq!(dues, [6_000, 6_001], "both are kept");
        world.check_names();
    }
}

#[test]
fn a_death_whose_place_is_taken_goes_one_millisecond_later() {
    let world = World::at(1_000);
    let once = RetryPolicy {
        attempts_max: Some(1),
        ..retry()
    };
    let engine = world.engine([(A, Registration::inline(fails("no")).retry(once))]);
    let old = TimerKey::decode(&world.put_named(A, "x", 900)).unwrap();
    let occupied = DeadKey {
        kind: A,
        dead_at_ms: 1_000,
        generation: old.generation,
        reference: old.reference,
    };
    world.commit(Batch::new().put(occupied.encode(), "occupied"));
    assert_eq!(world.run(&engine).total.dead, 1);
    assert_eq!(world.get(occupied.encode()).unwrap(), "occupied");
    let name = NameKey {
        kind: A,
        reference: Bytes::from_static(b"x"),
    };
    let row = NameRow::decode(&world.get(name.encode()).unwrap()).unwrap();
    assert_eq!((row.state, row.due_ms), (NameState::Dead, 1_001));
}

#[test]
fn a_failed_run_never_moves_a_timer_that_changed_meanwhile() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(fails("no")).retry(retry()))]);
    world.put_named(A, "x", 900);
    let other = world.clone();
    world.store.before_commit(1, move |_, _, _| {
        other.kick(A, "x", 900);
    });
    let report = world.run(&engine);
    assert_eq!((report.total.raced, report.total.failed), (1, 0));
    let [(key, row)] = &world.timers()[..] else {
        panic!("one timer");
    };
    assert_eq!((key.due_ms, row.header.attempt), (900, 0));
    world.check_names();
}

/// Writers that bypass the verbs can break a name; the timer then fires by its own row, and the name
/// of another scheduling is not touched.
#[test]
fn a_timer_whose_name_row_is_damaged_fires_by_its_own_row() {
    for fire in [true, false] {
        for damage in [
            Write::Delete(Bytes::new()),
            Write::Put(Bytes::new(), Bytes::from_static(b"garbage")),
        ] {
            let world = World::at(1_000);
            let seen = Seen::default();
            let engine = if fire {
                world.engine([(A, Registration::inline(notes(&seen)))])
            } else {
                world.engine([(A, Registration::inline(fails("no")).retry(retry()))])
            };
            world.put_named(A, "x", 900);
            let name = NameKey {
                kind: A,
                reference: Bytes::from_static(b"x"),
            }
            .encode();
            let deleted = matches!(damage, Write::Delete(_));
            world.commit(if deleted {
                Batch::new().delete(name.clone())
            } else {
                Batch::new().put(name.clone(), "garbage")
            });
            let report = world.run(&engine);
            assert_eq!(report.total.raced, 0);
            assert_eq!(
                (report.total.fired, report.total.failed),
                if fire { (1, 0) } else { (0, 1) }
            );
            assert_eq!(world.get(name).is_none(), deleted);
        }
    }
}

#[test]
fn a_name_in_another_state_than_its_timer_is_followed_by_the_moves() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(fails("no")).retry(retry()))]);
    let key = TimerKey::decode(&world.put_named(A, "x", 900)).unwrap();
    let name = NameKey {
        kind: A,
        reference: Bytes::from_static(b"x"),
    };
    let odd = NameRow {
        state: NameState::Retrying,
        due_ms: key.due_ms,
        generation: key.generation,
    };
    world.commit(Batch::new().put(name.encode(), odd.encode()));
    assert_eq!(world.run(&engine).total.failed, 1);
    world.check_names();
}

#[test]
fn cancelling_by_name_finds_a_timer_that_back_off_has_moved() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(fails("no")))]);
    let original = world.put_named(A, "x", 900);
    world.run(&engine);
    assert_eq!(world.get(original), None, "it lies elsewhere now");
    let cancelled = block_on(world.verbs().cancel(&world.partition, A, &"x".into(), None));
    assert!(cancelled.unwrap().is_some());
    assert!(world.memory.rows(&world.partition).is_empty());
    world.clock.advance_ms(100_000);
    assert_eq!(world.run(&engine).total.failed, 0);
}

/// Requeued timers keep their last failure and start over; their name agrees with their row, so that
/// firing them is one commit.
#[test]
fn a_requeued_timer_and_its_name_agree_and_it_fires_in_one_commit() {
    let world = World::at(1_000);
    let once = RetryPolicy {
        attempts_max: Some(1),
        ..retry()
    };
    let engine = world.engine([(A, Registration::inline(fails("no")).retry(once))]);
    world.put_named(A, "x", 900);
    assert_eq!(world.run(&engine).total.dead, 1);
    let verbs = world.verbs();
    let dead = block_on(verbs.dead(&world.partition, None, None, 1)).unwrap();
    block_on(verbs.requeue(&world.partition, &dead.dead[0].id)).unwrap();
    world.check_names();
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let before = world.store.counts();
    assert_eq!(world.run(&engine).total.fired, 1);
    assert_eq!((world.store.counts() - before).commits(), 1);
}

//! Rows of the timer class whose key or header does not decode: set aside once, byte for byte,
//! hiding and delaying nothing.

use dueline::rows::{DeadKey, QuarantineKey, TimerKey, class};
use dueline::store::{Batch, Key};
use dueline::timers::{Registration, TickBudget};

use crate::world::handlers::{Seen, notes};
use crate::world::{A, B, World};

/// A key of lane A that is too short, with a due that still reads.
fn malformed(kind: u8, due_ms: u64) -> Key {
    let mut key = vec![b'w', 0, kind];
    key.extend_from_slice(&due_ms.to_be_bytes());
    key.push(7);
    key.into()
}

#[test]
fn malformed_rows_before_at_and_after_now_neither_block_nor_poll_nor_hide() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let rows = [10, 1_000, 1_200].map(|due_ms| malformed(A.0, due_ms));
    for (n, key) in rows.iter().enumerate() {
        world.commit(Batch::new().put(key.clone(), format!("bytes {n}")));
    }
    world.put(A, "due", 900);
    world.put(A, "later", 1_500);

    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!((report.quarantined, report.total.fired), (2, 1));
    assert_eq!(
        report.next_wake_ms,
        Some(1_200),
        "the malformed one of the future"
    );
    world.clock.advance_ms(200);
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!((report.quarantined, report.next_wake_ms), (1, Some(1_500)));
    world.clock.advance_ms(300);
    let _tick = world.woken_tick(&engine, TickBudget::default());
    assert_eq!(seen.all(), ["due", "later"]);
    assert!(world.memory.wakes().is_empty());

    let aside = world.rows(class::QUARANTINE);
    assert_eq!(aside.len(), 3);
    for (n, ((key, value), original)) in aside.iter().zip(&rows).enumerate() {
        assert_eq!(&QuarantineKey::decode(key).unwrap().original(), original);
        assert_eq!(value, &format!("bytes {n}"));
    }
}

/// One page shows the whole of a small partition, so what is malformed need not wait for its due.
#[test]
fn a_malformed_row_of_the_future_in_a_small_partition_is_set_aside_when_it_is_seen() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    world.commit(Batch::new().put(malformed(A.0, 5_000), "bytes"));
    world.put(A, "later", 9_000);
    let report = world.run(&engine);
    assert_eq!((report.quarantined, report.total.fired), (1, 0));
    assert_eq!(report.next_wake_ms, Some(9_000));
}

#[test]
fn keys_that_name_no_kind_are_set_aside_through_their_own_wake() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    for key in [&b"w\0"[..], &b"w\0\0"[..], &b"w\0\0\0\0\0\0\0\0\0\x09"[..]] {
        world.commit(Batch::new().put(key.to_vec(), "bytes"));
    }
    world.put(A, "x", 900);
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!((report.quarantined, report.total.fired), (3, 1));
    assert!(world.memory.wakes().is_empty());
    assert_eq!(world.rows(class::QUARANTINE).len(), 3);
}

#[test]
fn malformed_rows_of_an_unknown_kind_are_left_alone() {
    let world = World::at(1_000);
    let engine = world.engine([(B, Registration::inline(notes(&Seen::default())))]);
    let key = malformed(A.0, 10);
    world.commit(Batch::new().put(key.clone(), "bytes"));
    for _ in 0..2 {
        assert_eq!(world.run(&engine).quarantined, 0);
        assert_eq!(
            world
                .woken_tick(&engine, TickBudget::default())
                .report
                .quarantined,
            0
        );
    }
    assert_eq!(world.get(key).unwrap(), "bytes");
}

/// A tick sets aside no more rows than it may read: ten thousand malformed rows are no reason to
/// keep a partition for ever.
#[test]
fn a_flood_of_malformed_rows_is_set_aside_within_the_limits_of_each_tick() {
    for woken in [false, true] {
        let world = World::at(100_000);
        let seen = Seen::default();
        let engine = world.engine([
            (A, Registration::inline(notes(&seen))),
            (B, Registration::inline(notes(&seen))),
        ]);
        for n in 0..3_000 {
            world.commit(Batch::new().put(malformed(A.0, n), "bytes"));
        }
        world.put(A, "behind", 50_000);
        world.put(B, "beside", 50_000);
        let budget = TickBudget {
            max_scanned: 512,
            ..TickBudget::default()
        };
        let mut ticks = 0;
        while seen.len() < 2 {
            let report = if woken {
                world.woken_tick(&engine, budget).report
            } else {
                world.run_with(&engine, budget)
            };
            ticks += 1;
            assert!(
                report.scanned <= 700,
                "{} rows were read in a tick",
                report.scanned
            );
            assert!(report.quarantined <= 700);
            assert!(
                seen.all().contains(&"beside".to_owned()),
                "in the first tick"
            );
            assert_eq!(report.stopped_on_budget, seen.len() < 2);
        }
        assert!(ticks <= 12, "{ticks} ticks for 3,000 rows of 512 each");
        assert_eq!(world.run(&engine).next_wake_ms, None);
    }
}

#[test]
fn the_same_malformed_row_written_again_is_set_aside_beside_the_first() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(notes(&Seen::default())))]);
    for n in 0..3 {
        world.commit(Batch::new().put(malformed(A.0, 10), format!("bytes {n}")));
        assert_eq!(
            world
                .woken_tick(&engine, TickBudget::default())
                .report
                .quarantined,
            1
        );
    }
    let mut values: Vec<_> = world
        .rows(class::QUARANTINE)
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    values.sort();
    assert_eq!(values, ["bytes 0", "bytes 1", "bytes 2"]);
}

#[test]
fn a_malformed_row_whose_bytes_change_under_the_tick_is_left_to_the_next() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(notes(&Seen::default())))]);
    let key = malformed(A.0, 10);
    world.commit(Batch::new().put(key.clone(), "before"));
    world.store.before_commit(1, move |inner, partition, _| {
        let change = Batch::new().put(key, "after");
        assert!(
            dueline_testkit::block_on(inner.apply(partition, change))
                .unwrap()
                .is_committed()
        );
    });
    let report = world.woken_tick(&engine, TickBudget::default()).report;
    assert_eq!((report.quarantined, report.total.raced), (0, 1));
    assert_eq!(
        world
            .woken_tick(&engine, TickBudget::default())
            .report
            .quarantined,
        1
    );
    assert_eq!(world.rows(class::QUARANTINE)[0].1, "after");
}

/// A row that cannot be set aside now holds its lane back; the tick ends all the same.
#[test]
fn a_row_whose_place_is_taken_each_time_ends_the_tick_and_waits() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::inline(notes(&Seen::default())))]);
    let key = world.put(A, "x", 900);
    world.commit(Batch::new().put(key.clone(), "\u{63}a header of a later version"));
    let old = TimerKey::decode(&key).unwrap();
    let occupied = DeadKey {
        kind: A,
        dead_at_ms: 1_000,
        generation: old.generation,
        reference: old.reference,
    };
    world.commit(Batch::new().put(occupied.encode(), "occupied"));
    world.put(A, "behind", 950);
    let report = world.run(&engine);
    assert!(report.total.dead == 1 || report.held_back, "{report:?}");
    assert_eq!(world.get(occupied.encode()).unwrap(), "occupied");
    world.clock.advance_ms(1);
    world.run(&engine);
    assert!(world.timers().is_empty());
}

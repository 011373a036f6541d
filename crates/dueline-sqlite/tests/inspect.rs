//! Goal: a look at a database tells what is in it and what is wrong with it, and changes nothing. Method: a
//! store writes, a stranger damages what the store would never, `inspect` looks.
#![cfg(test)]

mod support;

use std::fs;

use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Header, NameKey, NameRow, NameState, PauseKey, PauseRow,
    TimerKey, TimerRow,
};
use dueline::store::Batch;
use dueline::timers::TimerKind;
use dueline_sqlite::OpenError;
use dueline_sqlite::inspect::{KindContents, LaneWithoutWake, inspect, repair_wakes};
use support::{Home, KIND, apply, partition};

const NOW_MS: u64 = 10_000;
const OTHER: TimerKind = TimerKind(17);

fn key(kind: TimerKind, due_ms: u64) -> TimerKey {
    TimerKey {
        kind,
        due_ms,
        generation: 7_000 << 20,
        reference: "r".into(),
    }
}

fn timer(kind: TimerKind, due_ms: u64) -> Batch {
    Batch::new().put(key(kind, due_ms).encode(), TimerRow::default().encode())
}

fn name_at(due_ms: u64) -> Batch {
    let name = NameKey {
        kind: KIND,
        reference: "r".into(),
    };
    let row = NameRow {
        state: NameState::Pending,
        due_ms,
        generation: 7_000 << 20,
    };
    Batch::new().put(name.encode(), row.encode())
}

/// Two partitions with timers, a dead one, a pause, a row set aside and rows of the application.
fn filled() -> Home {
    let home = Home::new();
    let store = home.open();
    let dead = DeadKey {
        kind: KIND,
        dead_at_ms: 5,
        generation: 6,
        reference: "r".into(),
    };
    let dead_row = DeadRow {
        header: Header::default(),
        reason: DeadReason::Handler,
        codec_version: 0,
        payload: "p".into(),
    };
    let pause = PauseKey { kind: OTHER };
    let batches = [
        ("a", timer(KIND, 9_000)),
        ("a", timer(KIND, 90_000)),
        ("a", name_at(90_000)),
        (
            "a",
            Batch::new().put(pause.encode(), PauseRow { since_ms: 1 }.encode()),
        ),
        ("a", timer(OTHER, 9_000)),
        ("b", timer(KIND, 11_000)),
        ("b", Batch::new().put(dead.encode(), dead_row.encode())),
        (
            "b",
            Batch::new()
                .put(&b"q\0x"[..], "as found")
                .put("state", "mine"),
        ),
    ];
    for (name, batch) in batches {
        apply(&store, &partition(name), batch);
    }
    store.close();
    home
}

#[test]
fn a_sound_database_is_counted_and_nothing_is_found() {
    let home = filled();
    let found = inspect(home.path(), NOW_MS).unwrap();
    assert_eq!(
        (found.schema, found.in_use, found.unclean),
        (found.schema_known, false, false)
    );
    assert_eq!(found.damage, Vec::<String>::new());
    assert!(found.file_bytes > 0 && found.written_at_ms.is_some());
    let contents = found.contents.unwrap();
    assert_eq!(
        (
            contents.partitions,
            contents.quarantined,
            contents.malformed
        ),
        (2, 1, 0)
    );
    let kind = KindContents {
        timers: 3,
        overdue: 1,
        dead: 1,
        paused: 0,
    };
    assert_eq!(contents.kinds.get(&KIND), Some(&kind));
    let other = KindContents {
        timers: 1,
        overdue: 1,
        dead: 0,
        paused: 1,
    };
    assert_eq!(contents.kinds.get(&OTHER), Some(&other));
    assert_eq!(contents.newest_scheduling_ms, Some(7_000));
    assert_eq!(
        (
            contents.lanes_without_wake.count,
            contents.names_adrift.count
        ),
        (0, 0)
    );
    assert!(contents.wakes >= 2);
}

#[test]
fn a_lane_whose_wake_is_missing_or_late_is_named_and_a_paused_one_is_not() {
    let home = filled();
    let stranger = home.stranger();
    stranger.execute("DELETE FROM wake", []).unwrap();
    stranger
        .execute(
            "INSERT INTO wake (kind, at, part) SELECT 16, 11001, id FROM part WHERE name = x'62'",
            [],
        )
        .unwrap();
    let lanes = inspect(home.path(), NOW_MS)
        .unwrap()
        .contents
        .unwrap()
        .lanes_without_wake;
    let missing = LaneWithoutWake {
        partition: partition("a"),
        kind: KIND,
        due_ms: 9_000,
        wake_ms: None,
    };
    let late = LaneWithoutWake {
        partition: partition("b"),
        kind: KIND,
        due_ms: 11_000,
        wake_ms: Some(11_001),
    };
    assert_eq!((lanes.count, lanes.named), (2, vec![missing, late]));
    // At that time the wake has come: it is as good as one that was early.
    let later = inspect(home.path(), 11_001)
        .unwrap()
        .contents
        .unwrap()
        .lanes_without_wake;
    assert_eq!(later.count, 1);
}

#[test]
fn a_name_that_points_at_nothing_is_found() {
    let home = filled();
    let store = home.open();
    apply(&store, &partition("a"), name_at(12_345));
    store.close();
    let adrift = inspect(home.path(), NOW_MS)
        .unwrap()
        .contents
        .unwrap()
        .names_adrift;
    assert_eq!(adrift.count, 1);
    assert_eq!(
        adrift.named.first().map(|name| name.partition.clone()),
        Some(partition("a"))
    );
}

#[test]
fn a_malformed_key_is_counted_until_it_is_set_aside() {
    let home = filled();
    let store = home.open();
    apply(
        &store,
        &partition("b"),
        Batch::new().put(&b"w\0\x10\0\x01"[..], "short"),
    );
    store.close();
    let contents = inspect(home.path(), NOW_MS).unwrap().contents.unwrap();
    assert_eq!(
        (contents.malformed, contents.lanes_without_wake.count),
        (1, 0)
    );
}

#[test]
fn a_look_while_the_store_is_open_sees_what_was_committed_and_says_that_it_is_in_use() {
    let home = filled();
    let store = home.open();
    apply(&store, &partition("c"), timer(KIND, 20_000));
    let found = inspect(home.path(), NOW_MS).unwrap();
    assert!(found.in_use && found.unclean);
    assert_eq!(found.contents.unwrap().partitions, 3);
    apply(&store, &partition("c"), timer(KIND, 30_000));
    store.close();
    assert!(!inspect(home.path(), NOW_MS).unwrap().in_use);
}

/// The files beside the lock, each with its bytes.
fn files(home: &Home) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(home.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .filter(|(name, _)| !name.ends_with("-shm"))
        .collect();
    files.sort();
    files
}

#[test]
fn a_look_leaves_every_byte_of_a_closed_file_and_leaves_no_file_behind() {
    let home = filled();
    let before = files(&home);
    inspect(home.path(), NOW_MS).unwrap();
    assert!(before == files(&home));
}

#[test]
fn a_look_leaves_the_log_of_a_process_that_was_killed() {
    let home = filled();
    let store = home.open();
    apply(&store, &partition("c"), timer(KIND, 20_000));
    let killed = Home::new();
    for (name, bytes) in files(&home) {
        fs::write(killed.folder.path().join(name), bytes).unwrap();
    }
    store.close();
    let before = files(&killed);
    assert!(
        before
            .iter()
            .any(|(name, log)| name.ends_with("-wal") && !log.is_empty())
    );
    let found = inspect(killed.path(), NOW_MS).unwrap();
    assert_eq!(found.contents.unwrap().partitions, 3);
    assert!(found.unclean && before == files(&killed));
}

#[test]
fn a_newer_schema_is_told_and_its_rows_are_left_alone() {
    let home = filled();
    home.stranger()
        .execute("UPDATE meta SET schema = 99", [])
        .unwrap();
    let found = inspect(home.path(), NOW_MS).unwrap();
    assert_eq!((found.schema, found.contents.is_none()), (99, true));
}

#[test]
fn damaged_pages_are_reported_and_do_not_end_the_look_in_an_error() {
    let home = Home::new();
    let store = home.open();
    for page in 0..40 {
        let batch = (0..50).fold(Batch::new(), |batch, row| {
            batch.put(key(KIND, page * 50 + row).encode(), vec![0; 100])
        });
        apply(&store, &partition("a"), batch);
    }
    store.checkpoint().unwrap();
    store.close();
    let mut bytes = fs::read(home.path()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8_192].fill(0xa5);
    fs::write(home.path(), bytes).unwrap();
    let log = home.path().with_file_name("timers.db-wal");
    fs::write(log, []).unwrap();
    let found = inspect(home.path(), NOW_MS).unwrap();
    assert!(!found.damage.is_empty());
}

#[test]
fn what_is_no_database_of_ours_is_refused_by_name() {
    let home = Home::new();
    assert!(matches!(
        inspect(home.path(), NOW_MS),
        Err(OpenError::CannotOpen { .. })
    ));
    fs::write(home.path(), vec![b'x'; 8_192]).unwrap();
    assert!(matches!(
        inspect(home.path(), NOW_MS),
        Err(OpenError::Corrupt { .. })
    ));
    fs::remove_file(home.path()).unwrap();
    home.stranger().execute("CREATE TABLE t (x)", []).unwrap();
    assert!(matches!(
        inspect(home.path(), NOW_MS),
        Err(OpenError::Foreign { .. })
    ));
}

#[test]
fn a_repair_sets_the_missing_wakes_and_leaves_the_mark_of_an_unclean_stop() {
    let home = filled();
    home.stranger().execute("DELETE FROM wake", []).unwrap();
    home.stranger()
        .execute("UPDATE meta SET unclean = 1", [])
        .unwrap();
    home.clock.set(10_000);
    let repairs = repair_wakes(home.path(), &home.options()).unwrap();
    let set: Vec<(String, u64)> = repairs
        .named
        .iter()
        .map(|set| (set.partition.to_string(), set.at_ms))
        .collect();
    assert_eq!(
        (repairs.count, set),
        (2, vec![("a".to_owned(), 10_000), ("b".to_owned(), 11_000)])
    );
    let found = inspect(home.path(), NOW_MS).unwrap();
    assert!(found.unclean);
    assert_eq!(found.contents.unwrap().lanes_without_wake.count, 0);
}

#[test]
fn a_repair_is_refused_while_the_store_is_open_and_creates_no_database() {
    let home = filled();
    let store = home.open();
    let refused = repair_wakes(home.path(), &home.options());
    assert!(matches!(refused, Err(OpenError::Locked { .. })));
    store.close();
    let nowhere = home.path().with_file_name("other.db");
    assert!(repair_wakes(&nowhere, &home.options()).is_err());
    assert!(!nowhere.exists());
}

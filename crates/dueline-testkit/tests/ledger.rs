//! Goal: the ledger of the model sees what it is there for.
//! Method: batches that an engine must never commit, one rule each, and the sound one beside it.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    reason = "a test that goes wrong here has found something"
)]

use std::sync::Arc;

use bytes::Bytes;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, Flags, Header, NameKey, NameRow, QuarantineKey,
    TimerKey, TimerRow,
};
use dueline::store::{Batch, Group, NamespaceStore, Partition, Wake, WakeSettle};
use dueline::timers::TimerKind;
use dueline_testkit::model::{Arena, Occurrence, Source, cut_key, effect_key_of};
use dueline_testkit::{ManualClock, block_on};

const KIND: TimerKind = TimerKind(16);

struct World {
    arena: Arc<Arena>,
    partition: Partition,
}

impl World {
    fn new() -> Self {
        Self {
            arena: Arena::new(&ManualClock::new(1_000)),
            partition: Partition::new("p").expect("a name"),
        }
    }

    fn commit(&self, source: Source, batch: Batch) -> &Self {
        let store = self.arena.actor(source);
        let outcome = block_on(store.apply(&self.partition, batch)).expect("a commit");
        assert!(outcome.is_committed());
        self
    }

    fn engine(&self, batch: Batch) -> &Self {
        self.commit(Source::Engine, batch)
    }

    fn user(&self, batch: Batch) -> &Self {
        self.commit(Source::User, batch)
    }

    fn broken(&self) -> Vec<String> {
        self.arena.ledger().broken().to_vec()
    }

    #[track_caller]
    fn assert_broke(&self, rule: &str) {
        let broken = self.broken();
        assert!(
            broken.iter().any(|line| line.contains(rule)),
            "{rule}: {broken:?}"
        );
    }

    #[track_caller]
    fn assert_sound(&self) {
        assert_eq!(self.broken(), [""; 0]);
    }
}

fn key(due_ms: u64) -> TimerKey {
    TimerKey {
        kind: KIND,
        due_ms,
        generation: 7,
        reference: "r".into(),
    }
}

fn occurrence() -> Occurrence {
    Occurrence {
        kind: KIND,
        generation: 7,
        reference: "r".into(),
    }
}

fn row() -> TimerRow {
    TimerRow {
        header: Header {
            original_due_ms: 900,
            ..Header::default()
        },
        payload: Bytes::from_static(b"payload"),
    }
}

fn put(due_ms: u64, row: &TimerRow) -> Batch {
    Batch::new().put(key(due_ms).encode(), row.encode())
}

fn failed(attempt: u16, error: &str) -> TimerRow {
    let mut row = row();
    row.header.attempt = attempt;
    row.header.failure = Some(Failure::new(1_000, error));
    row
}

fn effect() -> Batch {
    Batch::new().put(effect_key_of(&occurrence()), "")
}

#[test]
fn a_timer_that_fires_is_sound() {
    let world = World::new();
    world.user(put(900, &row()));
    world.engine(effect().delete(key(900).encode()));
    world.assert_sound();
    assert_eq!(world.arena.ledger().effects(), 1);
    let fired = world
        .arena
        .ledger()
        .has_effect(&world.partition, &occurrence());
    assert!(fired);
}

#[test]
fn a_timer_that_vanishes_is_seen_unless_a_user_or_a_handler_took_it() {
    let gone = || Batch::new().delete(key(900).encode());
    let world = World::new();
    world.user(put(900, &row())).engine(gone());
    world.assert_broke("without an effect");
    let world = World::new();
    world.user(put(900, &row())).user(gone());
    world.assert_sound();
    let world = World::new();
    world.user(put(900, &row()));
    world.engine(gone().put(cut_key(&occurrence()), ""));
    world.assert_sound();
}

#[test]
fn an_effect_twice_or_without_its_timer_is_seen() {
    let world = World::new();
    world.user(put(900, &row()));
    world.engine(effect().delete(key(900).encode()));
    world.engine(effect());
    world.assert_broke("without its timer");
}

#[test]
fn a_timer_that_comes_back_is_seen() {
    let world = World::new();
    world.user(put(900, &row()));
    world.engine(effect().delete(key(900).encode()));
    world.engine(put(900, &row()));
    world.assert_broke("came back");
}

#[test]
fn an_early_effect_is_seen() {
    let world = World::new();
    world.user(put(1_001, &row()));
    world.engine(effect().delete(key(1_001).encode()));
    world.assert_broke("early");
}

#[test]
fn two_rows_of_one_occurrence_are_seen() {
    let world = World::new();
    world.user(put(900, &row()));
    world.engine(put(5_000, &failed(1, "no")));
    world.assert_broke("two rows");
}

#[test]
fn an_attempt_is_charged_for_a_failure_and_not_for_the_store() {
    let moved = |to: &TimerRow| put(5_000, to).delete(key(900).encode());
    for (to, sound) in [
        (failed(1, "no"), true),
        (failed(0, "no"), false),
        (failed(2, "no"), false),
        (failed(0, "the store is full"), true),
        (failed(1, "the store is full"), false),
    ] {
        let world = World::new();
        world.user(put(900, &row())).engine(moved(&to));
        if sound {
            world.assert_sound();
        } else {
            world.assert_broke("charged wrongly");
        }
    }
}

#[test]
fn a_claim_counts_and_its_release_gives_back() {
    let mut claimed = row();
    claimed.header.attempt = 1;
    claimed.header.flags = Flags {
        claimed: true,
        ..Flags::default()
    };
    let world = World::new();
    world.user(put(900, &row()));
    world.engine(put(9_000, &claimed).delete(key(900).encode()));
    world.assert_sound();
    world.engine(put(1_000, &row()).delete(key(9_000).encode()));
    world.assert_sound();
}

#[test]
fn a_move_that_changes_the_payload_or_the_due_as_asked_is_seen() {
    let mut other_payload = failed(1, "no");
    other_payload.payload = "other".into();
    let mut other_due = failed(1, "no");
    other_due.header.original_due_ms = 901;
    for to in [other_payload, other_due] {
        let world = World::new();
        world.user(put(900, &row()));
        world.engine(put(5_000, &to).delete(key(900).encode()));
        world.assert_broke("changed the payload or the due");
    }
}

#[test]
fn a_name_that_disagrees_with_its_timer_is_seen() {
    let mut named = row();
    named.header.flags.named = true;
    let name = NameKey {
        kind: KIND,
        reference: "r".into(),
    };
    let name_row = NameRow::of(&key(900), &named.header);
    let world = World::new();
    world.user(put(900, &named).put(name.encode(), name_row.encode()));
    world.assert_sound();
    world.engine(effect().delete(key(900).encode()));
    world.assert_broke("disagree");
}

#[test]
fn a_dead_timer_is_still_there() {
    let dead_key = DeadKey {
        kind: KIND,
        dead_at_ms: 1_000,
        generation: 7,
        reference: "r".into(),
    };
    let dead = DeadRow {
        header: failed(1, "no").header,
        reason: DeadReason::Handler,
        codec_version: 0,
        payload: row().payload,
    };
    let world = World::new();
    world.user(put(900, &row()));
    let buried = Batch::new()
        .delete(key(900).encode())
        .put(dead_key.encode(), dead.encode());
    world.engine(buried);
    world.assert_sound();
    world.engine(Batch::new().delete(dead_key.encode()));
    world.assert_broke("without an effect");
}

#[test]
fn a_malformed_row_may_leave_for_quarantine_alone() {
    let short = TimerKey::lane_due_end(KIND, 500);
    let place = QuarantineKey::of(&short).encode();
    for (kept, sound) in [("bytes", true), ("other", false)] {
        let world = World::new();
        world.user(Batch::new().put(short.clone(), "bytes"));
        world.engine(Batch::new().delete(short.clone()).put(place.clone(), kept));
        if sound {
            world.assert_sound();
        } else {
            world.assert_broke("malformed row vanished");
        }
    }
}

#[test]
fn a_lane_without_a_wake_is_seen_at_the_next_commit() {
    let world = World::new();
    world.user(put(900, &row()));
    let wake = Wake {
        at_ms: 1_000,
        partition: world.partition.clone(),
        kind: KIND,
    };
    assert!(world.arena.memory().remove_wake(&wake));
    world.user(Batch::new().put("x", ""));
    world.assert_broke("no wake");
}

#[test]
fn a_settle_is_checked_like_a_commit() {
    let world = World::new();
    world.user(put(900, &row()));
    let group = Group {
        batches: Vec::new(),
        settles: vec![WakeSettle {
            kind: KIND,
            served_ms: vec![1_000],
        }],
    };
    let store = world.arena.actor(Source::Engine);
    let done = block_on(store.apply_all(&world.partition, group));
    assert_eq!(done.next_wakes_ms, [Some(1_000)]);
    world.assert_sound();
}

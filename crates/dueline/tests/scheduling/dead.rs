//! Dead timers: listed, requeued, purged.

use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, Header, NameKey, TimerKey, TimerRow, class,
};
use dueline::store::{Batch, StoreErrorKind};
use dueline::timers::{
    DeadId, DeadPage, ScheduleOutcome, Scheduled, Timer, TimerError, TimerKind, TimerState,
};
use dueline_testkit::{CommitFault, block_on};

use super::fixture::{KIND, NOW_MS, World, bury_anonymous, move_batch, reference_of};

fn dead(world: &World, after: Option<&DeadId>, limit: usize) -> DeadPage {
    block_on(
        world
            .timers
            .dead(&world.partition, Some(KIND), after, limit),
    )
    .unwrap()
}

fn only(world: &World) -> DeadId {
    let page = dead(world, None, 10);
    assert_eq!((page.dead.len(), page.next), (1, None));
    page.dead[0].id.clone()
}

fn requeue(world: &World, id: &DeadId) -> Result<Option<Scheduled>, TimerError> {
    block_on(world.timers.requeue(&world.partition, id))
}

fn row(reason: DeadReason, codec_version: u16, payload: &'static str) -> DeadRow {
    DeadRow {
        header: Header {
            attempt: 20,
            original_due_ms: 5_000,
            failure: Some(Failure::new(8_999, "refused")),
            ..Header::default()
        },
        reason,
        codec_version,
        payload: payload.into(),
    }
}

#[test]
fn a_dead_timer_shows_what_it_was_and_what_it_died_of() {
    let world = World::new();
    let generation = world.put_in_state("a", TimerState::Dead, 9_000);
    let view = dead(&world, None, 10).dead.remove(0);
    assert_eq!(
        (view.kind, view.reference, view.named),
        (KIND, reference_of("a"), true)
    );
    assert_eq!(
        (view.reason, view.error.unwrap().error.as_str()),
        (DeadReason::Exhausted, "gone")
    );
    assert_eq!((view.dead_at_ms, view.due_at_ms), (9_000, 5_000));
    assert_eq!(
        (view.attempt, view.generation, view.payload),
        (20, generation, "old".into())
    );
}

#[test]
fn a_dead_timer_is_found_by_its_name() {
    let world = World::new();
    for state in TimerState::ALL {
        world.put_in_state(state.as_str(), state, 9_000);
        let reference = reference_of(state.as_str());
        let found = block_on(
            world
                .timers
                .dead_by_name(&world.partition, KIND, &reference),
        );
        let found = found.unwrap().map(|view| view.id);
        let expected = (state == TimerState::Dead).then(|| only(&world));
        assert_eq!(found, expected, "{state}");
    }
    let nobody = reference_of("nobody");
    let found = block_on(world.timers.dead_by_name(&world.partition, KIND, &nobody));
    assert_eq!(found.unwrap(), None);
}

#[test]
fn a_long_list_of_the_dead_comes_in_pages_of_what_was_asked() {
    let world = World::new();
    bury_many(&world, 300);
    assert_eq!(dead(&world, None, 200).dead.len(), 200);
    let all = dead(&world, None, 1_000);
    assert_eq!((all.dead.len(), all.next), (300, None));
    let exact = dead(&world, None, 300);
    assert_eq!(
        (exact.dead.len(), exact.next),
        (300, None),
        "an exact fit has no empty page"
    );
}

#[test]
fn pages_of_the_dead_go_by_kind_and_time_of_death_and_meet_each_once() {
    let world = World::new();
    for (number, reference) in ["d", "a", "c", "b", "e"].into_iter().enumerate() {
        world.put_in_state(reference, TimerState::Dead, 9_000 + number as u64);
    }
    let other = DeadKey {
        kind: TimerKind(17),
        dead_at_ms: 1,
        generation: 1,
        reference: reference_of("z"),
    };
    world.write(Batch::new().put(other.encode(), row(DeadReason::Handler, 0, "").encode()));
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = dead(&world, after.as_ref(), 2);
        assert!(page.dead.len() <= 2);
        found.extend(page.dead.into_iter().map(|view| view.reference));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["d", "a", "c", "b", "e"].map(reference_of));
    let all = block_on(world.timers.dead(&world.partition, None, None, 100)).unwrap();
    assert_eq!(all.dead.len(), 6);
    let id = &all.dead[5].id;
    assert_eq!(id.kind(), TimerKind(17));
    let foreign = world
        .timers
        .dead(&world.partition, Some(KIND), Some(id), 10);
    assert!(matches!(block_on(foreign), Err(TimerError::Invalid(_))));
    let none = world.timers.dead(&world.partition, None, None, 0);
    assert!(matches!(block_on(none), Err(TimerError::Invalid(_))));
}

#[test]
fn the_id_of_a_dead_timer_is_url_safe_text_that_reads_back() {
    let world = World::new();
    let reference = Timer::new(KIND, vec![0, 255, b'/', b'%']);
    let made = world.schedule(reference);
    let key = DeadKey {
        kind: KIND,
        dead_at_ms: u64::MAX,
        generation: made.generation,
        reference: vec![0, 255, b'/', b'%'].into(),
    };
    world.write(Batch::new().put(key.encode(), row(DeadReason::Handler, 0, "").encode()));
    let id = only(&world);
    let text = id.to_string();
    assert!(
        text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{text}"
    );
    assert_eq!(text.parse::<DeadId>().unwrap(), id);
    let too_long = "a".repeat(4_000);
    let upper = text.to_uppercase();
    for wrong in [
        "",
        "zz",
        "1",
        "10",
        &text[..20],
        &upper,
        &too_long,
        "\u{e9}\u{20ac}",
    ] {
        assert!(wrong.parse::<DeadId>().is_err(), "{wrong}");
    }
}

#[test]
fn a_requeued_timer_lives_again_as_the_same_occurrence() {
    let world = World::new();
    let generation = world.put_in_state("a", TimerState::Dead, 9_000);
    let id = only(&world);
    let expected = Scheduled {
        generation,
        due_at_ms: NOW_MS,
        state: TimerState::Pending,
        outcome: ScheduleOutcome::Moved,
    };
    assert_eq!(requeue(&world, &id).unwrap(), Some(expected));
    let view = world.get("a").unwrap();
    assert_eq!(
        (view.due_at_ms, view.next_at_ms, view.attempt),
        (5_000, NOW_MS, 0)
    );
    assert_eq!(view.last_error.unwrap().error, "gone", "kept for reading");
    assert_eq!(view.payload, "old");
    world.check();
    assert_eq!(requeue(&world, &id).unwrap(), None, "it is no longer dead");
    world.check();
}

#[test]
fn an_anonymous_dead_timer_is_requeued_beside_a_named_one_of_its_reference() {
    let world = World::new();
    let generation = world.put_in_state("a", TimerState::Pending, 50_000);
    bury_anonymous(&world, "a", 7, &row(DeadReason::Handler, 0, "mine"));
    let made = requeue(&world, &only(&world)).unwrap().unwrap();
    assert_eq!(made.generation, 7);
    assert_eq!(
        world.get("a").unwrap().generation,
        generation,
        "the name is not touched"
    );
    assert_eq!(world.class_rows(class::TIMER).len(), 2);
    world.check();
}

#[test]
fn a_row_whose_header_did_not_decode_comes_back_byte_for_byte() {
    let world = World::new();
    let value = "\u{9}from the future";
    bury_anonymous(
        &world,
        "a",
        7,
        &row(DeadReason::UndecodableHeader, 0, value),
    );
    requeue(&world, &only(&world)).unwrap().unwrap();
    let rows = world.class_rows(class::TIMER);
    assert_eq!(rows[0].1, value);
    assert_eq!(TimerKey::decode(&rows[0].0).unwrap().due_ms, NOW_MS);
}

#[test]
fn a_requeue_that_meets_a_new_scheduling_of_the_name_does_nothing() {
    let world = World::new();
    world.put_in_state("a", TimerState::Dead, 9_000);
    let id = only(&world);
    let made = world.schedule(Timer::new(KIND, "a").due_at(50_000).named());
    assert_eq!(requeue(&world, &id).unwrap(), None);
    assert_eq!(world.get("a").unwrap().generation, made.generation);
    world.check();
}

#[test]
fn a_requeue_that_is_overtaken_before_its_commit_does_nothing() {
    let world = World::new();
    world.put_in_state("a", TimerState::Dead, 9_000);
    let id = only(&world);
    let timers = dueline::timers::Timers::new(world.memory.clone(), world.timers.runtime().clone());
    world.store.before_commit(1, move |_, partition, _| {
        let timer = Timer::new(KIND, "a").due_at(50_000).named();
        block_on(timers.schedule(partition, timer, Default::default())).unwrap();
    });
    assert_eq!(requeue(&world, &id).unwrap(), None);
    assert_eq!(world.get("a").unwrap().next_at_ms, 50_000);
    world.check();
}

#[test]
fn a_purge_removes_the_dead_row_and_its_name() {
    let world = World::new();
    world.put_in_state("a", TimerState::Dead, 9_000);
    let id = only(&world);
    assert!(block_on(world.timers.purge(&world.partition, &id)).unwrap());
    assert!(world.rows().is_empty());
    assert!(!block_on(world.timers.purge(&world.partition, &id)).unwrap());
}

#[test]
fn a_purge_of_an_anonymous_one_leaves_the_name_of_its_reference() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    bury_anonymous(&world, "a", 7, &row(DeadReason::Handler, 0, ""));
    assert!(block_on(world.timers.purge(&world.partition, &only(&world))).unwrap());
    assert!(world.get("a").is_some());
    world.check();
}

#[test]
fn a_dead_row_that_does_not_decode_is_shown_and_can_be_purged() {
    let world = World::new();
    let key = bury_anonymous(&world, "a", 7, &row(DeadReason::Handler, 0, ""));
    world.write(Batch::new().put(key, "\u{9}from the future"));
    let view = dead(&world, None, 10).dead.remove(0);
    assert_eq!(view.payload, "\u{9}from the future");
    assert!(view.error.unwrap().error.contains("malformed"));
    match requeue(&world, &view.id) {
        Err(TimerError::Store(error)) => assert_eq!(error.kind(), StoreErrorKind::Corrupt),
        other => panic!("expected an error, got {other:?}"),
    }
    let page = block_on(world.timers.requeue_page(&world.partition, None, None, 10)).unwrap();
    assert_eq!(
        (page.requeued.len(), page.left),
        (0, 1),
        "it does not hold up a page"
    );
    assert!(block_on(world.timers.purge(&world.partition, &view.id)).unwrap());
}

fn bury_many(world: &World, count: u64) {
    for number in 0..count {
        world.put_in_state(&format!("n{number:03}"), TimerState::Dead, 9_000 + number);
    }
}

#[test]
fn a_page_is_requeued_in_one_commit_and_the_rest_follows() {
    let world = World::new();
    bury_many(&world, 100);
    let mut after = None;
    let mut requeued = Vec::new();
    let before = world.store.counts();
    loop {
        let page = world
            .timers
            .requeue_page(&world.partition, None, after.as_ref(), 1_000);
        let page = block_on(page).unwrap();
        requeued.extend(page.requeued.into_iter().map(|(_, made)| made.generation));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let cost = world.store.counts() - before;
    assert_eq!((cost.groups, cost.applies), (2, 0));
    requeued.dedup();
    assert_eq!(requeued.len(), 100);
    assert_eq!(world.class_rows(class::DEAD).len(), 0);
    assert_eq!(world.class_rows(class::TIMER).len(), 100);
    world.check();
}

#[test]
fn a_page_goes_on_behind_those_that_others_took() {
    let world = World::new();
    bury_many(&world, 10);
    let timers = dueline::timers::Timers::new(world.memory.clone(), world.timers.runtime().clone());
    world.store.before_commit(1, move |_, partition, _| {
        for reference in ["n000", "n004", "n009"] {
            let reference = reference_of(reference);
            block_on(timers.cancel(partition, KIND, &reference, None))
                .unwrap()
                .unwrap();
        }
    });
    let page = block_on(world.timers.requeue_page(&world.partition, None, None, 64)).unwrap();
    assert_eq!((page.requeued.len(), page.left, page.next), (7, 3, None));
    assert_eq!(world.class_rows(class::TIMER).len(), 7);
    world.check();
}

#[test]
fn a_page_that_the_store_stops_is_resumed_from_the_same_place() {
    let world = World::new();
    bury_many(&world, 10);
    let fault = CommitFault::StoppedAfter {
        batches: 4,
        kind: StoreErrorKind::Unavailable,
    };
    world.store.fail_commit(1, fault);
    let stopped = block_on(world.timers.requeue_page(&world.partition, None, None, 64));
    assert!(matches!(stopped, Err(TimerError::Store(_))));
    world.check();
    let page = block_on(world.timers.requeue_page(&world.partition, None, None, 64)).unwrap();
    assert_eq!(page.requeued.len(), 6);
    world.check();
}

#[test]
fn a_name_that_does_not_decode_holds_up_only_its_own_timer() {
    let world = World::new();
    bury_many(&world, 3);
    let name = NameKey {
        kind: KIND,
        reference: reference_of("n001"),
    };
    world.write(Batch::new().put(name.encode(), "?"));
    let page = block_on(world.timers.requeue_page(&world.partition, None, None, 64)).unwrap();
    assert_eq!((page.requeued.len(), page.left), (2, 1));
    let id = only(&world);
    assert!(matches!(requeue(&world, &id), Err(TimerError::Store(_))));
}

#[test]
fn what_an_older_codec_could_not_read_is_requeued_for_a_newer_one() {
    let world = World::new();
    let readable = TimerRow {
        header: Header::default(),
        payload: "kept".into(),
    };
    let wrapped = DeadRow {
        payload: readable.encode(),
        ..row(DeadReason::UndecodableHeader, 0, "")
    };
    let unreadable = row(DeadReason::UndecodableHeader, 0, "\u{9}from the future");
    let cases = [
        ("older", row(DeadReason::UndecodablePayload, 2, "p")),
        ("same", row(DeadReason::UndecodablePayload, 3, "p")),
        ("handler", row(DeadReason::Handler, 0, "p")),
        ("exhausted", row(DeadReason::Exhausted, 0, "p")),
        ("readable again", wrapped),
        ("unreadable", unreadable),
    ];
    for (generation, (reference, row)) in cases.iter().enumerate() {
        bury_anonymous(&world, reference, generation as u64, row);
    }
    let page = world
        .timers
        .requeue_undecodable(&world.partition, KIND, 3, None, 100);
    let page = block_on(page).unwrap();
    assert_eq!((page.requeued.len(), page.left, page.next), (2, 4, None));
    let live: Vec<_> = world
        .class_rows(class::TIMER)
        .iter()
        .map(|(key, value)| {
            (
                TimerKey::decode(key).unwrap().reference,
                TimerRow::decode(value),
            )
        })
        .collect();
    assert_eq!(live[0].0, "older");
    assert_eq!(live[1], (reference_of("readable again"), Ok(readable)));
}

#[test]
fn a_dead_timer_moves_and_dies_again_under_one_name() {
    let world = World::new();
    world.put_in_state("a", TimerState::Dead, 9_000);
    requeue(&world, &only(&world)).unwrap();
    world.write(move_batch(
        &world.memory,
        &world.partition,
        "a",
        TimerState::Dead,
        11_000,
    ));
    world.check();
    let view = dead(&world, None, 10).dead.remove(0);
    assert_eq!(view.dead_at_ms, 11_000);
}

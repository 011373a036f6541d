//! Lists: by name, by lane, page by page, while timers move.

use dueline::Bytes;
use dueline::rows::{NameKey, TimerKey};
use dueline::store::{Batch, NamespaceStore, StoreErrorKind};
use dueline::timers::{
    ListCursor, ListQuery, Timer, TimerError, TimerKind, TimerPage, TimerState, TimerStates,
};
use dueline_testkit::block_on;

use super::fixture::{KIND, World, move_batch, reference_of, states};

fn list(world: &World, query: &ListQuery) -> TimerPage {
    block_on(world.timers.list(&world.partition, query)).unwrap()
}

fn by_name(prefix: &'static [u8]) -> ListQuery {
    ListQuery {
        prefix: Some(Bytes::from_static(prefix)),
        ..ListQuery::new(KIND)
    }
}

/// Every page of a query: references in order, and how many pages.
fn walk(world: &World, mut query: ListQuery) -> (Vec<Bytes>, usize) {
    let mut found = Vec::new();
    for pages in 1..1_000 {
        let page = list(world, &query);
        assert!(page.timers.len() <= query.limit);
        found.extend(page.timers.into_iter().map(|view| view.reference));
        query.after = page.next;
        if query.after.is_none() {
            return (found, pages);
        }
    }
    panic!("the list never ends");
}

fn references(list: &[&str]) -> Vec<Bytes> {
    list.iter()
        .map(|reference| reference_of(reference))
        .collect()
}

/// Anonymous and named timers of every state; dues: a 50, b 40, c 30, d dead, e 20 (s).
fn world_of_all_states() -> World {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    world.put_in_state("b", TimerState::Retrying, 40_000);
    world.put_in_state("c", TimerState::Claimed, 30_000);
    world.put_in_state("d", TimerState::Dead, 9_000);
    world.schedule(Timer::new(KIND, "e").due_at(20_000));
    world.schedule(Timer::new(TimerKind(17), "other").named());
    world
}

#[test]
fn a_lane_is_listed_in_the_order_of_the_due_then_the_dead() {
    let world = world_of_all_states();
    for limit in [1, 2, 3, 4, 5, 100] {
        let query = ListQuery {
            limit,
            ..ListQuery::new(KIND)
        };
        let (found, _) = walk(&world, query);
        assert_eq!(found, references(&["e", "c", "b", "a", "d"]), "{limit}");
    }
    let page = list(&world, &ListQuery::new(KIND));
    let named: Vec<bool> = page.timers.iter().map(|view| view.named).collect();
    assert_eq!(named, [false, true, true, true, true]);
}

#[test]
fn names_are_listed_in_the_order_of_their_references() {
    let world = world_of_all_states();
    let (found, pages) = walk(
        &world,
        ListQuery {
            limit: 2,
            ..by_name(b"")
        },
    );
    assert_eq!(
        found,
        references(&["a", "b", "c", "d"]),
        "dead ones included, anonymous ones not"
    );
    assert_eq!(pages, 2, "an exact fit has no empty page behind it");
}

#[test]
fn filters_hold_on_both_walks() {
    let world = world_of_all_states();
    for prefix in [None, Some(Bytes::new())] {
        let query = |states, due_before_ms| ListQuery {
            states,
            due_before_ms,
            prefix: prefix.clone(),
            limit: 1,
            ..ListQuery::new(KIND)
        };
        let named = |list: &[&str]| {
            let mut list = references(list);
            if prefix.is_some() {
                list.retain(|reference| reference != "e");
                list.sort();
            }
            list
        };
        for state in TimerState::ALL {
            let expected = match state {
                TimerState::Pending => named(&["e", "a"]),
                TimerState::Retrying => named(&["b"]),
                TimerState::Claimed => named(&["c"]),
                TimerState::Dead => named(&["d"]),
            };
            assert_eq!(
                walk(&world, query(state.into(), None)).0,
                expected,
                "{state}"
            );
        }
        let all = TimerStates::all();
        assert_eq!(walk(&world, query(all, Some(40_000))).0, named(&["e", "c"]));
        assert_eq!(
            walk(&world, query(all, Some(40_001))).0,
            named(&["e", "c", "b"])
        );
        assert_eq!(
            walk(&world, query(all, Some(u64::MAX))).0,
            named(&["e", "c", "b", "a"])
        );
        assert!(walk(&world, query(all, Some(0))).0.is_empty());
        let two = states(&[TimerState::Claimed, TimerState::Dead]);
        assert_eq!(walk(&world, query(two, None)).0, named(&["c", "d"]));
        assert!(walk(&world, query(states(&[]), None)).0.is_empty());
    }
}

#[test]
fn a_prefix_ends_at_the_right_byte() {
    let world = World::new();
    let names: [&[u8]; 9] = [
        b"",
        b"\x00",
        b"\x00\x00",
        b"a",
        b"a\xff",
        b"a\xff\xff",
        b"b",
        b"\xff",
        b"\xff\xff",
    ];
    for kind in [KIND, TimerKind(0xFF)] {
        for name in names {
            world.schedule(Timer::new(kind, Bytes::from_static(name)).named());
        }
        for prefix in names
            .into_iter()
            .chain([b"\x01".as_slice(), b"\xff\xff\xff"])
        {
            let query = ListQuery {
                prefix: Some(Bytes::from_static(prefix)),
                limit: 2,
                ..ListQuery::new(kind)
            };
            let expected: Vec<&[u8]> = names
                .into_iter()
                .filter(|name| name.starts_with(prefix))
                .collect();
            assert_eq!(walk(&world, query).0, expected, "{prefix:?}");
        }
    }
}

#[test]
fn a_timer_that_moves_throughout_is_listed_by_name_exactly_once() {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
    for name in &names {
        world.put_in_state(name, TimerState::Pending, 50_000);
    }
    // Between the scan of a page and the read of its rows, and now and then later, every timer
    // moves to another due.
    let (memory, partition, moved) = (world.memory.clone(), world.partition.clone(), names.clone());
    let mut reads = 0;
    world.store.fail_reads_with(move |_| {
        reads += 1;
        if reads % 5 == 2 {
            for name in &moved {
                let at_ms = 50_000 + reads;
                let batch = move_batch(&memory, &partition, name, TimerState::Retrying, at_ms);
                assert!(
                    block_on(memory.apply(&partition, batch))
                        .unwrap()
                        .is_committed()
                );
            }
        }
        None
    });
    let query = ListQuery {
        limit: 3,
        ..by_name(b"n")
    };
    let (found, _) = walk(&world, query);
    assert_eq!(
        found,
        names
            .iter()
            .map(|name| reference_of(name))
            .collect::<Vec<_>>()
    );
    world.check();
}

#[test]
fn names_that_come_and_go_do_not_disturb_the_others() {
    let world = World::new();
    for name in ["a", "c", "e", "g"] {
        world.put_in_state(name, TimerState::Pending, 50_000);
    }
    let mut query = ListQuery {
        limit: 2,
        ..by_name(b"")
    };
    let first = list(&world, &query);
    query.after = first.next;
    // The last one listed goes; one appears before the place, one behind it.
    for gone in ["c", "e"] {
        block_on(
            world
                .timers
                .cancel(&world.partition, KIND, &reference_of(gone), None),
        )
        .unwrap();
    }
    world.put_in_state("b", TimerState::Pending, 50_000);
    world.put_in_state("f", TimerState::Pending, 50_000);
    assert_eq!(walk(&world, query).0, references(&["f", "g"]));
}

#[test]
fn a_cursor_is_good_for_its_own_query_alone() {
    let world = world_of_all_states();
    let query = ListQuery {
        limit: 1,
        ..ListQuery::new(KIND)
    };
    let cursor = list(&world, &query).next.unwrap();
    let text = cursor.to_string();
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(text.parse::<ListCursor>().unwrap(), cursor);

    let with = |change: &dyn Fn(&mut ListQuery)| {
        let mut query = ListQuery {
            after: Some(cursor.clone()),
            ..query.clone()
        };
        change(&mut query);
        block_on(world.timers.list(&world.partition, &query))
    };
    assert!(with(&|_| {}).is_ok());
    assert!(
        with(&|query| query.limit = 50).is_ok(),
        "the limit may change"
    );
    type Other = fn(&mut ListQuery);
    let others: [Other; 4] = [
        |query| query.kind = TimerKind(17),
        |query| query.states = TimerStates::live(),
        |query| query.due_before_ms = Some(40_000),
        |query| query.prefix = Some(Bytes::new()),
    ];
    for other in others {
        assert!(matches!(with(&other), Err(TimerError::Invalid(_))));
    }
}

#[test]
fn a_cursor_of_one_prefix_is_refused_for_a_longer_one() {
    let world = World::new();
    for name in ["ab", "abc", "abcd"] {
        world.put_in_state(name, TimerState::Pending, 50_000);
    }
    let query = |prefix, after| ListQuery {
        limit: 1,
        after,
        ..by_name(prefix)
    };
    let cursor = list(&world, &query(b"a", None)).next;
    for prefix in [b"ab".as_slice(), b"", b"b"] {
        let foreign = query(prefix, cursor.clone());
        let answer = block_on(world.timers.list(&world.partition, &foreign));
        assert!(matches!(answer, Err(TimerError::Invalid(_))), "{prefix:?}");
    }
}

#[test]
fn a_forged_cursor_is_refused_and_reads_nothing_else() {
    let world = world_of_all_states();
    let query = ListQuery {
        limit: 1,
        ..ListQuery::new(KIND)
    };
    let text = list(&world, &query).next.unwrap().to_string();
    for wrong in ["", "0", "xyz", "00112233"] {
        assert!(wrong.parse::<ListCursor>().is_err(), "{wrong}");
    }
    // The right query, a place outside of it: the end of the fingerprint, then another class.
    let forged: ListCursor = format!("{}6100", &text[..16]).parse().unwrap();
    let forged = ListQuery {
        after: Some(forged),
        ..query
    };
    let answer = block_on(world.timers.list(&world.partition, &forged));
    assert!(matches!(answer, Err(TimerError::Invalid(_))));
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let world = World::new();
    let refused = |query: ListQuery| {
        let answer = block_on(world.timers.list(&world.partition, &query));
        assert!(matches!(answer, Err(TimerError::Invalid(_))), "{query:?}");
    };
    refused(ListQuery {
        limit: 0,
        ..ListQuery::new(KIND)
    });
    refused(ListQuery::new(TimerKind::INVALID));
    refused(ListQuery {
        prefix: Some(vec![0; 513].into()),
        ..ListQuery::new(KIND)
    });
    world.store.fail_read(1, StoreErrorKind::Unavailable);
    let answer = block_on(world.timers.list(&world.partition, &ListQuery::new(KIND)));
    assert!(matches!(answer, Err(TimerError::Store(_))));
}

#[test]
fn a_filter_that_few_pass_ends_in_short_pages_not_in_long_calls() {
    let world = World::new();
    for number in 0..5_000_u64 {
        let key = TimerKey {
            kind: KIND,
            due_ms: number,
            generation: number,
            reference: Bytes::new(),
        };
        let row = dueline::rows::TimerRow::default();
        world.write(Batch::new().put(key.encode(), row.encode()));
    }
    let query = ListQuery {
        states: TimerState::Dead.into(),
        limit: 1_000,
        ..ListQuery::new(KIND)
    };
    let page = list(&world, &query);
    assert!(page.timers.is_empty());
    let query = ListQuery {
        after: Some(page.next.expect("there is more to look at")),
        ..query
    };
    assert_eq!(list(&world, &query).next, None);
}

#[test]
fn large_payloads_end_a_page_early_and_lose_nothing() {
    let world = World::new();
    for number in 0..300_u64 {
        let timer = Timer::new(KIND, format!("n{number:03}")).due_at(number);
        world.schedule(timer.payload(vec![0; 64 * 1_024]).named());
    }
    for prefix in [None, Some(Bytes::new())] {
        let query = ListQuery {
            prefix,
            limit: 1_000,
            ..ListQuery::new(KIND)
        };
        let (mut found, pages) = walk(&world, query);
        assert_eq!(pages, 3, "8 MiB of payload in each page but the last");
        found.dedup();
        assert_eq!(found.len(), 300);
    }
}

#[test]
fn rows_that_do_not_decode_hide_nothing() {
    let world = World::new();
    world.put_in_state("a", TimerState::Pending, 50_000);
    let malformed = [0x77, 0, KIND.0, 1, 2];
    let name = NameKey {
        kind: KIND,
        reference: reference_of("b"),
    };
    let future = TimerKey {
        kind: KIND,
        due_ms: 60_000,
        generation: 1,
        reference: reference_of("c"),
    };
    world.write(
        Batch::new()
            .put(malformed.to_vec(), "?")
            .put(name.encode(), "?")
            .put(future.encode(), "\u{9}from the future"),
    );
    let page = list(&world, &ListQuery::new(KIND));
    let found: Vec<_> = page
        .timers
        .iter()
        .map(|view| view.reference.clone())
        .collect();
    assert_eq!(found, references(&["a", "c"]));
    assert_eq!(page.timers[1].payload, "\u{9}from the future");
    assert!(page.timers[1].last_error.is_some());
    assert_eq!(walk(&world, by_name(b"")).0, references(&["a"]));
}

#[test]
fn a_claim_that_has_ended_counts_as_retrying() {
    let world = world_of_all_states();
    let view = world.get("c").unwrap();
    assert_eq!(view.state, TimerState::Claimed);
    assert_eq!(view.state_at(29_999), TimerState::Claimed);
    assert_eq!(view.state_at(30_000), TimerState::Retrying);
    assert_eq!(
        world.get("a").unwrap().state_at(u64::MAX),
        TimerState::Pending
    );
}

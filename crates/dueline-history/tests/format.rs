//! Goal: every event is a line that reads back as the same event, and a history has one hash.
//! Method: one event of each sort, each with every field set and with none.
#![cfg(test)]

use dueline_history::{
    Budget, Commit, EffectMark, Ended, EngineRules, Event, KindCounts, LaneWake, Occurrence,
    Octets, Outcome, Policy, Recurring, Retries, Run, Scan, Source, Tick, Told, Verb, VerbName,
    What, first_difference, trace_hash,
};

fn event(what: What) -> Event {
    Event {
        at_ms: 1_767_225_600_000,
        actor: "node-1".into(),
        what,
    }
}

fn rules() -> EngineRules {
    EngineRules {
        skew_ms: Some(5),
        lateness_ms: Some(900),
        budget: Some(budget()),
        overrun_ms: 7,
        turns_max: Some(3),
        kinds_in_order: vec![16],
        recurring: vec![Recurring {
            kind: 17,
            every_ms: 60_000,
            may_skip: true,
        }],
        retries: vec![Retries {
            kind: 16,
            initial_ms: 400,
            max_ms: 3_000,
            jitter_percent: 20,
            attempts_max: Some(4),
        }],
        wakes_kept: true,
    }
}

fn budget() -> Budget {
    Budget {
        fired: 8,
        per_kind: 4,
        scanned: 32,
        elapsed_ms: 500,
    }
}

fn occurrence() -> Occurrence {
    Occurrence {
        kind: 16,
        reference: "order-1".into(),
        generation: u64::MAX,
    }
}

fn commits() -> [Commit; 2] {
    let full = Commit {
        source: Source::User,
        node: Some(1),
        request: Some(7),
        epoch: 3,
        turn: 9,
        partition: "p".into(),
        store_ms: 12,
        preconditions: 2,
        rows: vec![("w\0k".into(), Some("v".into())), ("n\0k".into(), None)],
        effects: vec![EffectMark {
            occurrence: occurrence(),
            attempt: 2,
            due_ms: 11,
            next_due_ms: Some(21),
        }],
        cuts: vec![occurrence()],
        wakes: vec![LaneWake {
            kind: 16,
            at_ms: 21,
        }],
        has_more: true,
        landed_late: true,
        asked_ms: Some(10),
    };
    [full, Commit::default()]
}

fn tick() -> Tick {
    Tick {
        node: 1,
        turn: 9,
        partition: "p".into(),
        began_ms: 12,
        elapsed_ms: 3,
        budget: budget(),
        kinds: vec![KindCounts {
            kind: 16,
            fired: 1,
            ..KindCounts::default()
        }],
        quarantined: 1,
        scanned: 4,
        stopped_on_budget: true,
        held_back: true,
        next_wake_ms: Some(21),
    }
}

fn runs() -> Vec<Run> {
    let ends = [
        Ended::Done,
        Ended::Reschedule,
        Ended::Retry { after_ms: None },
        Ended::Retry { after_ms: Some(5) },
        Ended::Dead,
        Ended::Uncharged,
        Ended::Cut,
    ];
    let run = |ended| Run {
        node: 1,
        turn: 9,
        partition: "p".into(),
        kind: 16,
        reference: "order-1".into(),
        generation: 5,
        attempt: 1,
        due_ms: 11,
        now_ms: 12,
        ended,
    };
    ends.into_iter().map(run).collect()
}

fn verbs() -> [Verb; 2] {
    let bare = Verb {
        request: 7,
        partition: "p".into(),
        kind: 16,
        reference: Octets::default(),
        verb: VerbName::Get,
        policy: None,
        named: false,
        due_ms: None,
    };
    let full = Verb {
        verb: VerbName::Schedule,
        policy: Some(Policy::KeepEarliest),
        named: true,
        due_ms: Some(11),
        ..bare.clone()
    };
    [bare, full]
}

fn history() -> Vec<Event> {
    let begin = |rules| What::Begin {
        seed: 1,
        deadline_ms: 2,
        lag_ms: 3,
        rules,
    };
    let told = |told| What::Told { request: 7, told };
    let mut all = vec![
        begin(None),
        begin(Some(Box::new(EngineRules::default()))),
        begin(Some(Box::new(rules()))),
        What::Started { node: 1, epoch: 3 },
        What::Clock {
            node: None,
            wall_ms: 5,
            jumped_ms: -3_600_000,
        },
        What::Registry {
            node: 1,
            kinds: vec![16, 255],
        },
        What::Phase { liveness: true },
        told(Told::Unknown),
        told(Told::Fail {
            why: "the store is full".into(),
        }),
        told(Told::Ok {
            outcome: Outcome::Replaced,
            generation: u64::MAX,
        }),
        What::Tick(tick()),
        What::Fault {
            fault: "wake_lost".into(),
            node: Some(1),
            partition: Some("p".into()),
        },
        What::Recovered {
            once: 1,
            twice: u64::MAX,
        },
        What::Mark {
            name: "payload of the largest size".into(),
        },
        What::Scan(Scan {
            partition: "p".into(),
            at_rest: true,
            rows: vec![("w\0k".into(), "v".into())],
            wakes: Vec::new(),
        }),
        What::Stopped {
            node: 1,
            crashed: true,
        },
    ];
    all.extend(commits().map(What::Commit));
    all.extend(verbs().map(What::Verb));
    all.extend(runs().into_iter().map(What::Fire));
    all.extend(runs().into_iter().map(What::Called));
    all.into_iter().map(event).collect()
}

#[test]
fn every_event_is_a_line_that_reads_back() {
    for event in history() {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}

#[test]
fn a_history_hashes_as_the_bytes_of_its_file_do() {
    let mut bytes = Vec::new();
    for event in history() {
        serde_json::to_writer(&mut bytes, &event).unwrap();
        bytes.push(b'\n');
    }
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(trace_hash(&history()), fnv);
}

/// The hash is a fingerprint that seeds are compared by over machines and builds: a change of the
/// format changes it, and nothing else does.
#[test]
fn the_hash_of_a_small_history_is_known() {
    let begin = event(What::Begin {
        seed: 1,
        deadline_ms: 2,
        lag_ms: 3,
        rules: None,
    });
    assert_eq!(trace_hash(&[]), 0xcbf2_9ce4_8422_2325);
    let line = r#"{"at_ms":1767225600000,"actor":"node-1","what":"begin","seed":1,"deadline_ms":2,"lag_ms":3}"#;
    assert_eq!(serde_json::to_string(&begin).unwrap(), line);
    assert_eq!(trace_hash(&[begin]), 12_927_137_046_355_312_814);
}

#[test]
fn the_first_difference_of_two_histories_is_named() {
    let one = history();
    assert_eq!(first_difference(&one, &one), None);
    let mut other = one.clone();
    other[3].at_ms += 1;
    other.truncate(7);
    let found = first_difference(&one, &other).unwrap();
    assert_eq!((found.at, found.one.as_ref()), (3, Some(&one[3])));
    assert!(found.to_string().starts_with("event 3: {"), "{found}");
    let shorter = first_difference(&one, &one[..5]).unwrap();
    assert_eq!((shorter.at, shorter.other), (5, None));
    assert_ne!(trace_hash(&one), trace_hash(&other));
}

//! Goal: the checker lets a right history pass and names each promise that a wrong one breaks.
//! Method: small histories, each with one thing changed.
#![cfg(test)]

use dueline_history::{Answered, Event, ListedTimer, Log, Operation, What, check, read};

const DEADLINE_MS: u64 = 1_000;
const LAG_MS: u64 = 500;

fn event(at_ms: u64, what: What) -> Event {
    Event {
        at_ms,
        actor: "test".into(),
        what,
    }
}

fn begin() -> Event {
    let what = What::Begin {
        seed: 1,
        deadline_ms: DEADLINE_MS,
        lag_ms: LAG_MS,
        rules: None,
    };
    event(0, what)
}

fn invoke(at_ms: u64, request: u64, operation: Operation) -> Event {
    event(at_ms, What::Invoke { request, operation })
}

fn answer(at_ms: u64, request: u64, answered: Answered) -> Event {
    event(at_ms, What::Answer { request, answered })
}

fn schedule(version: u64, due_ms: u64) -> Operation {
    Operation::Schedule {
        timer: "a".to_owned(),
        version,
        due_ms,
    }
}

fn cancel(force: bool) -> Operation {
    Operation::Cancel {
        timer: "a".to_owned(),
        force,
    }
}

fn list() -> Operation {
    Operation::List {
        prefix: "a".to_owned(),
    }
}

fn listed(version: u64, due_ms: u64) -> Answered {
    Answered::Listed(vec![ListedTimer {
        timer: "a".to_owned(),
        version,
        due_ms,
    }])
}

fn call_as(at_ms: u64, version: u64, due_ms: u64, occurrence: &str, status: u16) -> Event {
    let what = What::Call {
        timer: "a".to_owned(),
        version,
        occurrence: occurrence.to_owned(),
        due_ms,
        status,
    };
    event(at_ms, what)
}

fn call(at_ms: u64, version: u64, due_ms: u64) -> Event {
    call_as(at_ms, version, due_ms, &format!("msg_{version}"), 200)
}

fn created(version: u64, due_ms: u64) -> [Event; 2] {
    [
        invoke(10, version, schedule(version, due_ms)),
        answer(20, version, Answered::Created),
    ]
}

fn broken(parts: &[&[Event]]) -> Vec<String> {
    let mut history = vec![begin()];
    for part in parts {
        history.extend_from_slice(part);
    }
    let lines = check(&history).broken;
    lines.into_iter().map(|it| it.text).collect()
}

#[track_caller]
fn assert_right(parts: &[&[Event]]) {
    assert_eq!(broken(parts), Vec::<String>::new());
}

#[track_caller]
fn assert_names(parts: &[&[Event]], rule: &str) {
    let broken = broken(parts);
    assert!(
        broken.iter().any(|line| line.contains(rule)),
        "{rule}: {broken:?}"
    );
}

#[test]
fn a_timer_that_fires_at_its_due_is_right_and_one_that_never_fires_is_lost() {
    let timer = created(1, 100);
    assert_right(&[&timer, &[call(100, 1, 100)]]);
    assert_names(&[&timer], "is lost");
    let refused = call_as(100, 1, 100, "msg_1", 500);
    assert_names(&[&timer, &[refused]], "is lost");
}

#[test]
fn a_call_before_its_due_and_one_that_nobody_asked_for_are_named() {
    let timer = created(1, 100);
    assert_names(&[&timer, &[call(99, 1, 100)]], "was early");
    let strange = call(100, 2, 100);
    assert_names(&[&timer, &[call(100, 1, 100), strange]], "nobody asked");
    assert_names(&[&timer, &[call(200, 1, 150)]], "called as due at 150");
}

#[test]
fn one_version_has_one_occurrence_and_shares_it_with_no_other() {
    let timer = created(1, 100);
    let again = call(140, 1, 100);
    assert_right(&[&timer, &[call(100, 1, 100), again]]);
    let other = call_as(140, 1, 100, "msg_x", 200);
    assert_names(&[&timer, &[call(100, 1, 100), other]], "went out as");
    let next = [
        invoke(200, 2, schedule(2, 300)),
        answer(210, 2, Answered::Created),
        call_as(300, 2, 300, "msg_1", 200),
    ];
    assert_names(&[&timer, &[call(100, 1, 100)], &next], "one occurrence");
}

#[test]
fn a_cancel_is_final_but_for_a_call_under_way() {
    for (force, grace_ms) in [(true, DEADLINE_MS + LAG_MS), (false, LAG_MS)] {
        let timer = created(1, 100);
        let cancel = [
            invoke(110, 2, cancel(force)),
            answer(120, 2, Answered::Cancelled),
        ];
        assert_right(&[&timer, &cancel]);
        assert_right(&[&timer, &cancel, &[call(120 + grace_ms, 1, 100)]]);
        let late = [call(121 + grace_ms, 1, 100)];
        assert_names(&[&timer, &cancel, &late], "was removed");
        let not_yet_due = created(1, 121);
        let soon = [call(121, 1, 121)];
        assert_names(&[&not_yet_due, &cancel, &soon], "was removed");
    }
}

#[test]
fn a_refused_cancel_leaves_the_timer_as_it_was() {
    let timer = created(1, 100);
    let cancel = [
        invoke(110, 2, cancel(false)),
        answer(120, 2, Answered::InDelivery),
    ];
    assert_right(&[&timer, &cancel, &[call(11_000, 1, 100)]]);
    assert_names(&[&timer, &cancel], "is lost");
}

#[test]
fn what_is_not_found_has_fired_before_unless_a_cancel_without_an_answer_explains_it() {
    let timer = created(1, 100);
    let gone = [
        invoke(210, 2, cancel(false)),
        answer(220, 2, Answered::NotFound),
    ];
    assert_right(&[&timer, &[call(100, 1, 100)], &gone]);
    assert_names(&[&timer, &gone], "is lost: gone");
    let explained = [
        invoke(200, 2, cancel(false)),
        answer(205, 2, Answered::Unknown),
        gone[0].clone(),
        gone[1].clone(),
    ];
    assert_right(&[&timer, &explained]);
}

#[test]
fn a_replacement_is_final_and_one_that_finds_nothing_had_a_call_before_it() {
    let timer = created(1, 1_000);
    let replace = |answered: Answered| {
        [
            invoke(110, 2, schedule(2, 2_000)),
            answer(120, 2, answered),
            call(2_000, 2, 2_000),
        ]
    };
    assert_right(&[&timer, &replace(Answered::Replaced)]);
    assert_names(&[&timer, &replace(Answered::Created)], "is lost: gone");
    let old = [call(1_000, 1, 1_000)];
    assert_names(&[&timer, &replace(Answered::Replaced), &old], "was removed");
}

#[test]
fn a_request_without_an_answer_was_done_or_was_not() {
    let alone = [
        invoke(10, 1, schedule(1, 9_000)),
        answer(20, 1, Answered::Unknown),
    ];
    assert_right(&[&alone]);
    assert_right(&[&alone, &[call(9_000, 1, 9_000)]]);
    let seen = [invoke(30, 2, list()), answer(40, 2, listed(1, 9_000))];
    assert_names(&[&alone, &seen], "is lost");
    let empty = [
        invoke(50, 3, list()),
        answer(60, 3, Answered::Listed(Vec::new())),
    ];
    assert_right(&[&alone, &empty]);
    let later = [call(9_000, 1, 9_000)];
    assert_names(&[&alone, &seen, &empty, &later], "is not listed");
    let replaced = [
        invoke(30, 2, schedule(2, 9_500)),
        answer(40, 2, Answered::Unknown),
    ];
    let timer = created(1, 9_000);
    assert_right(&[&timer, &replaced, &[call(9_000, 1, 9_000)]]);
    assert_right(&[&timer, &replaced, &[call(9_500, 2, 9_500)]]);
    assert_names(&[&timer, &replaced], "is lost");
}

#[test]
fn a_request_that_is_sent_again_and_answered_is_in_doubt_no_more() {
    let timer = created(1, 9_000);
    let lost_answer = |operation: Operation| {
        [
            invoke(30, 2, operation.clone()),
            answer(40, 2, Answered::Unknown),
            invoke(50, 2, operation),
        ]
    };
    let replaced = [answer(60, 2, Answered::Replaced)];
    let again = lost_answer(schedule(2, 9_500));
    let new = [call(9_500, 2, 9_500)];
    assert_right(&[&timer, &again, &replaced, &new]);
    assert_names(&[&timer, &again, &replaced], "is lost");
    let old = [call(9_000, 1, 9_000)];
    assert_names(&[&timer, &again, &replaced, &old, &new], "was removed");
    let refused = [answer(60, 2, Answered::InDelivery)];
    let again = lost_answer(cancel(false));
    assert_names(&[&timer, &again, &refused], "is lost");
    assert_right(&[&timer, &again]);
}

#[test]
fn a_list_holds_what_is_there_and_nothing_else() {
    let timer = created(1, 9_000);
    let fired = [call(9_000, 1, 9_000)];
    let at = |answered: Answered| [invoke(200, 9, list()), answer(210, 9, answered)];
    assert_right(&[&timer, &at(listed(1, 9_000)), &fired]);
    let none = at(Answered::Listed(Vec::new()));
    assert_names(&[&timer, &none, &fired], "is not listed");
    assert_names(&[&timer, &at(listed(1, 8_000)), &fired], "never asked for");
    assert_names(&[&timer, &at(listed(7, 9_000)), &fired], "never asked for");
    let cancel = [
        invoke(100, 2, cancel(false)),
        answer(110, 2, Answered::Cancelled),
    ];
    assert_names(&[&timer, &cancel, &at(listed(1, 9_000))], "was listed as");
    assert_right(&[&timer, &cancel, &none]);
    let Answered::Listed(one) = listed(1, 9_000) else {
        panic!("a list");
    };
    let twice = at(Answered::Listed([one.clone(), one].concat()));
    assert_names(&[&timer, &twice, &fired], "listed twice");
}

#[test]
fn the_end_is_empty_healthy_and_small() {
    let quiet = |timers, dead_letters, findings: &[&str], file_bytes| {
        let findings = findings.iter().map(|text| (*text).to_owned()).collect();
        let what = What::Quiet {
            timers,
            dead_letters,
            findings,
            file_bytes,
            file_bytes_max: 100,
        };
        [event(900, what)]
    };
    assert_right(&[&quiet(0, 0, &[], 100)]);
    assert_names(&[&quiet(1, 0, &[], 0)], "left at the end");
    assert_names(&[&quiet(0, 1, &[], 0)], "left at the end");
    assert_names(&[&quiet(0, 0, &["a lane has no wake"], 0)], "doctor");
    assert_names(&[&quiet(0, 0, &[], 101)], "the files have");
}

#[test]
fn a_wrong_answer_and_a_history_without_a_beginning_are_named() {
    let wrong = Answered::Wrong("500".to_owned());
    let request = [invoke(10, 1, cancel(false)), answer(20, 1, wrong)];
    assert_names(&[&request], "was answered");
    assert_names(&[&[answer(20, 5, Answered::Created)]], "never sent");
    let empty = check(&[]).broken;
    assert!(empty[0].text.contains("no beginning"), "{empty:?}");
}

#[test]
fn a_history_reads_back_as_it_was_written() {
    let folder = std::env::temp_dir().join(format!("dueline-history-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("history.jsonl");
    let mut history = vec![begin()];
    history.extend(created(1, 100));
    history.push(invoke(30, 2, list()));
    history.push(answer(40, 2, listed(1, 100)));
    history.push(call(100, 1, 100));
    history.push(event(110, What::Killed));
    let log = Log::create(&path).unwrap();
    for event in &history {
        log.append(event).unwrap();
    }
    assert_eq!(read(&path).unwrap(), history);
    assert!(
        Log::create(&path).is_err(),
        "a history is never written over"
    );
    let figures = check(&history).figures;
    let counted = (figures.kills, figures.calls, figures.lists);
    assert_eq!(counted, (1, 1, 1));
    std::fs::remove_dir_all(&folder).unwrap();
}

//! Goal: the kept corpus leads every target to all that it is there for; a target that only ever sees
//! what is refused at the door tests the door.
//! Method: what the inputs of the corpus reach, added up, against what there is.
#![cfg(test)]

use std::collections::BTreeSet;

use bytes::Bytes;
use dueline::kinds::fuzzing::forms;
use dueline::rows::{
    DeadKey, DeadReason, DeadRow, KindNameKey, KindNameRow, NameKey, NameRow, NameState, PauseKey,
    PauseRow, QuarantineKey, TimerKey, TimerRow,
};
use dueline_fuzz::{
    Meddling, Target, TimeTexts, arguments_read_by, corpus, damaged_kinds_meddled,
    http_requests_answered, kind_rows_reread, operations_disguised, times_and_spans_read_by,
};

fn inputs(target: &str) -> Vec<Bytes> {
    let corpus = corpus(Target::named(target));
    corpus.into_iter().map(Bytes::from).collect()
}

/// All of these must have been reached.
fn all_reached(wanted: &[&str], reached: &BTreeSet<String>) {
    let missing: Vec<&&str> = wanted.iter().filter(|it| !reached.contains(**it)).collect();
    assert!(
        missing.is_empty(),
        "not reached: {missing:?}; reached: {reached:#?}"
    );
}

#[test]
fn keys_of_every_class_are_read() {
    let mut reached = BTreeSet::new();
    for input in inputs("row_keys") {
        let Some(length) = input.first() else {
            continue;
        };
        let first = input.len().min(1 + usize::from(*length));
        for key in [input.slice(1..first), input.slice(first..)] {
            let read = [
                ("timer", TimerKey::decode(&key).is_ok()),
                ("dead", DeadKey::decode(&key).is_ok()),
                ("name", NameKey::decode(&key).is_ok()),
                ("pause", PauseKey::decode(&key).is_ok()),
                ("kind name", KindNameKey::decode(&key).is_ok()),
                ("quarantine", QuarantineKey::decode(&key).is_ok()),
                (
                    "last kind",
                    TimerKey::decode(&key).is_ok_and(|key| key.kind.0 == 0xff),
                ),
                (
                    "latest",
                    TimerKey::decode(&key).is_ok_and(|key| key.due_ms == u64::MAX),
                ),
            ];
            let read = read.into_iter().filter(|(_, is_read)| *is_read);
            reached.extend(read.map(|(name, _)| name.to_owned()));
        }
    }
    let wanted = [
        "timer",
        "dead",
        "name",
        "pause",
        "kind name",
        "quarantine",
        "last kind",
        "latest",
    ];
    all_reached(&wanted, &reached);
}

#[test]
fn every_form_of_every_built_in_kind_is_read() {
    let mut read = BTreeSet::new();
    for input in inputs("kind_rows") {
        let forms = kind_rows_reread(&input, |form, bytes| (form.reread)(bytes));
        read.extend(forms.into_iter().map(|form| (form.kind, form.what)));
    }
    let missing: Vec<_> = forms()
        .filter(|form| !read.contains(&(form.kind, form.what)))
        .collect();
    assert!(missing.is_empty(), "not read: {missing:?}");
}

#[test]
fn every_verb_of_a_damaged_record_is_asked_and_every_row_damaged() {
    let mut reached = BTreeSet::new();
    for input in inputs("damaged_kinds") {
        reached.extend(damaged_kinds_meddled(&input, &Meddling::NONE));
    }
    let rows = forms().filter(|form| form.letter.is_some());
    let rows = rows.map(|form| format!("{} does not decode", form.what));
    let corrupt = VERBS_THAT_NEED_A_ROW
        .iter()
        .map(|verb| format!("{verb} corrupt"));
    let done = VERBS_THAT_NEED_A_ROW
        .iter()
        .chain(VERBS_THAT_LIST)
        .map(|verb| format!("{verb} done"));
    let wanted: Vec<String> = rows.chain(corrupt).chain(done).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    all_reached(&wanted, &reached);
}

const VERBS_THAT_NEED_A_ROW: &[&str] = &[
    "read a lease",
    "grant a lease",
    "renew a lease",
    "release a lease",
    "forget a lease",
    "read a ticket",
    "find a ticket",
    "open a ticket",
    "consume a ticket",
    "release a ticket",
    "extend a ticket",
    "cancel a ticket",
    "count tickets",
    "charge",
    "charge within limits",
    "read a usage",
    "charge the coordinator",
    "read a total",
    "append an outcome",
    "wake an outbox",
    "read a backlog",
    "append to a relay",
    "count successes",
    "read a reservation",
    "reserve",
    "commit",
    "abort",
    "extend a reservation",
    "forget a reservation",
];

const VERBS_THAT_LIST: &[&str] = &[
    "list tickets",
    "list what is set aside",
    "retry a ticket",
    "discard a ticket",
    "recount tickets",
    "list outcomes",
    "list dead outcomes",
    "requeue an outcome",
    "purge an outcome",
    "set an outcome aside",
    "set aside of a relay",
    "make visible",
    "look at a record",
    "look at a record now",
];

#[test]
fn values_of_every_class_and_form_are_read() {
    let mut reached = BTreeSet::new();
    for value in inputs("row_values") {
        if let Ok(TimerRow { header, payload }) = TimerRow::decode(&value) {
            let flags = header.flags;
            reached.insert(format!("timer {} {}", flags.named, flags.claimed));
            reached.insert(format!("failed {}", header.failure.is_some()));
            reached.insert(format!("recurring {}", flags.recurring));
            reached.insert(format!("payload {}", !payload.is_empty()));
        }
        if let Ok(row) = DeadRow::decode(&value) {
            reached.insert(format!("{:?}", row.reason));
        }
        if let Ok(row) = NameRow::decode(&value) {
            reached.insert(format!("{:?}", row.state));
        }
        if PauseRow::decode(&value).is_ok() {
            reached.insert("pause".to_owned());
        }
        if KindNameRow::decode(&value).is_ok() {
            reached.insert("kind name".to_owned());
        }
        if value.len() > 255 {
            reached.insert("long text".to_owned());
        }
    }
    let reasons = [
        DeadReason::Exhausted,
        DeadReason::Handler,
        DeadReason::UndecodablePayload,
        DeadReason::UndecodableHeader,
    ];
    let states = [
        NameState::Pending,
        NameState::Retrying,
        NameState::Claimed,
        NameState::Dead,
    ];
    let mut wanted: Vec<String> = reasons.iter().map(|it| format!("{it:?}")).collect();
    wanted.extend(states.iter().map(|it| format!("{it:?}")));
    for form in [
        "timer false",
        "timer true",
        "failed",
        "recurring",
        "payload",
    ] {
        wanted.extend([format!("{form} false"), format!("{form} true")]);
    }
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    wanted.extend(["pause", "kind name", "long text"]);
    all_reached(&wanted, &reached);
}

#[test]
fn times_and_spans_of_every_form_are_read() {
    let mut reached = BTreeSet::new();
    for input in inputs("times_and_spans") {
        let Ok(text) = std::str::from_utf8(&input) else {
            continue;
        };
        let read = times_and_spans_read_by(&input, &TimeTexts::SOUND);
        let forms = [
            ("T", 'T'),
            ("t", 't'),
            ("blank", ' '),
            ("ahead", '+'),
            ("fraction", '.'),
            ("utc", 'Z'),
        ];
        if read.time_ms.is_some() {
            let found = forms
                .into_iter()
                .filter(|(_, sign)| text[10..].contains(*sign));
            reached.extend(found.map(|(form, _)| format!("time {form}")));
            for (form, is_reached) in [
                ("leap day", text.contains("-02-29")),
                ("leap second", text.contains(":60")),
                ("behind", text[19..].contains('-')),
            ] {
                reached.extend(is_reached.then(|| format!("time {form}")));
            }
        } else if read.span_ms.is_some() {
            let form = if text.contains('P') {
                "ISO"
            } else {
                "friendly"
            };
            reached.insert(format!("span {form}"));
            for unit in ["w", "d", "h", "m", "s", "ms", "us", "ns"] {
                let is_reached = text.to_lowercase().contains(unit);
                reached.extend(is_reached.then(|| format!("span {unit}")));
            }
        } else {
            reached.insert("refused".to_owned());
        }
    }
    let wanted = [
        "time T",
        "time t",
        "time blank",
        "time ahead",
        "time behind",
        "time fraction",
        "time utc",
        "time leap day",
        "time leap second",
        "span ISO",
        "span friendly",
        "span w",
        "span d",
        "span h",
        "span m",
        "span s",
        "span ms",
        "span us",
        "span ns",
        "refused",
    ];
    all_reached(&wanted, &reached);
}

const COMMANDS: [&str; 12] = [
    "Serve(",
    "CreateTimer",
    "GetTimer",
    "ListTimers",
    "UpdateTimer",
    "CancelTimer",
    "ListDead",
    "RequeueDead",
    "PurgeDead",
    "ListPartitions",
    "Doctor(",
    "Usage:",
];
const COMPLAINTS: [&str; 7] = [
    "unrecognized subcommand",
    "unexpected argument",
    "invalid value",
    "required arguments",
    "cannot be used with",
    "cannot be used multiple times",
    "invalid UTF-8",
];

#[test]
fn every_command_is_understood_and_every_complaint_made() {
    let mut reached = BTreeSet::new();
    for input in inputs("arguments") {
        let shown = arguments_read_by(&input, dueline_cli::fuzzing::read_arguments);
        let words = COMMANDS.into_iter().chain(COMPLAINTS);
        let found = words.filter(|word| shown.contains(word));
        reached.extend(found.map(str::to_owned));
    }
    let wanted = [COMMANDS.as_slice(), &COMPLAINTS].concat();
    all_reached(&wanted, &reached);
}

/// Method, resource and statuses.
const ROUTES: [(&str, &[u16]); 20] = [
    ("GET healthz", &[200]),
    ("GET readyz", &[200]),
    ("GET v1/limits", &[200]),
    ("GET v1/partitions", &[200, 422]),
    ("GET v1/stats", &[200]),
    ("GET v1/partitions/*/dead-letters", &[200, 400]),
    ("POST v1/partitions/*/dead-letters:requeue", &[200]),
    ("POST v1/partitions/*/dead-letters/*:requeue", &[200, 404]),
    ("POST v1/partitions/*/dead-letters/*:purge", &[204, 404]),
    ("DELETE v1/partitions/*/dead-letters/*", &[405]),
    ("GET v1/partitions/*/timers", &[200, 400, 422]),
    ("POST v1/partitions/*/timers", &[201, 422]),
    ("POST v1/partitions/*/timers:batch", &[200, 422]),
    ("GET v1/partitions/*/timers/*", &[200, 403, 404, 422]),
    (
        "PUT v1/partitions/*/timers/*",
        &[200, 201, 400, 412, 413, 415, 421, 422],
    ),
    ("PATCH v1/partitions/*/timers/*", &[200, 404, 422]),
    (
        "DELETE v1/partitions/*/timers/*",
        &[204, 404, 409, 412, 422],
    ),
    ("POST v1/partitions/*/timers/*:fire-now", &[200, 404, 422]),
    ("POST v1/partitions/*/timers/*", &[405]),
    ("TRACE v1/partitions/*/timers", &[405]),
];
/// The codes of all problems but those of the store, and of two requests at once.
const CODES: [&str; 16] = [
    "bad_request",
    "body_too_large",
    "cross_origin",
    "dead_letter_not_found",
    "idempotency_key_reused",
    "invalid_name",
    "invalid_page_token",
    "invalid_request",
    "malformed_json",
    "method_not_allowed",
    "not_found",
    "precondition_failed",
    "timer_in_delivery",
    "timer_not_found",
    "unknown_host",
    "unsupported_media_type",
];

#[test]
fn every_route_is_taken_to_every_end() {
    let mut reached = BTreeSet::new();
    for input in inputs("http_requests") {
        let answering = dueline_server::fuzzing::Api::answer;
        reached.extend(http_requests_answered(&input, answering));
    }
    let mut wanted: Vec<String> = CODES.iter().map(|code| (*code).to_owned()).collect();
    for (route, statuses) in ROUTES {
        wanted.extend(statuses.iter().map(|status| format!("{route} {status}")));
    }
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    all_reached(&wanted, &reached);
}

/// How verbs end. What a store that fails or is full leaves of them is `Store`.
const VERBS: [(&str, &[&str]); 15] = [
    ("schedule Replace", &["Created", "Replaced"]),
    ("schedule KeepEarliest", &["Created", "Replaced"]),
    ("schedule IfAbsent", &["Created", "Kept"]),
    ("schedule", &["Store"]),
    ("cancel", &["done", "Store"]),
    ("cancel unless claimed", &["done", "Claimed", "Store"]),
    ("cancel if match", &["done", "GenerationMismatch"]),
    (
        "replace if match",
        &["done", "GenerationMismatch", "NotFound", "Store"],
    ),
    ("reschedule", &["done", "NotFound", "Store"]),
    ("update", &["done", "NotFound", "Invalid", "Store"]),
    ("pause", &["done", "Store"]),
    ("resume", &["done", "Store"]),
    ("requeue", &["done", "Store"]),
    ("purge", &["done", "Store"]),
    ("quarantined", &["done", "Store"]),
];
const TICKS: [&str; 14] = [
    "fired",
    "rescheduled",
    "claimed",
    "failed",
    "dead",
    "raced",
    "unknown",
    "held",
    "deferred",
    "quarantined",
    "paused",
    "stopped on budget",
    "held back",
    "full",
];
const SETTLES: [&str; 7] = [
    "fired",
    "rescheduled",
    "failed",
    "dead",
    "raced",
    "unknown",
    "held",
];

#[test]
fn histories_reach_every_end_of_a_verb_and_of_a_tick() {
    let mut reached = BTreeSet::new();
    for input in inputs("operations") {
        reached.extend(operations_disguised(&input, |store| store));
    }
    let mut wanted = vec!["a late commit".to_owned()];
    for (verb, ends) in VERBS {
        wanted.extend(ends.iter().map(|end| format!("{verb}: {end}")));
    }
    wanted.extend(TICKS.iter().map(|what| format!("ticked: {what}")));
    wanted.extend(SETTLES.iter().map(|what| format!("settled: {what}")));
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    all_reached(&wanted, &reached);
}

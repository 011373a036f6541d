//! What an inspection means for a person.

use dueline_sqlite::inspect::{Contents, Inspection, KindContents, Places};
use serde::Serialize;

/// A clock this far behind the newest timer was set back, or was ahead when that was scheduled.
const CLOCK_BEHIND_MS_MAX: u64 = 60_000;
/// 2026-01-01: no timer was ever scheduled before.
const FIRST_SENSIBLE_MS: u64 = 1_767_225_600_000;
/// The log is overwritten in place at about 16 MiB; one that is much larger is held by a reader.
const LOG_BYTES_EXPECTED_MAX: u64 = 256 * 1_024 * 1_024;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// Something has to be done.
    Problem,
}

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) detail: String,
}

impl Finding {
    fn new(check: &'static str, level: Level, detail: impl Into<String>) -> Self {
        Self {
            check,
            level,
            detail: detail.into(),
        }
    }
}

/// Everything there is to say, in the order in which one would ask.
pub(super) fn findings(
    inspection: &Inspection,
    now_ms: u64,
    repaired: Option<u64>,
) -> Vec<Finding> {
    let mut findings = vec![
        server(inspection),
        schema(inspection),
        integrity(inspection),
        log(inspection),
        clock(inspection, now_ms),
    ];
    if let Some(contents) = &inspection.contents {
        findings.push(wakes(contents, repaired));
        findings.push(names(contents));
        findings.push(timers(contents));
        findings.push(dead(contents));
        findings.push(quarantine(contents));
        findings.extend(unknown_kinds(contents));
    }
    findings
}

fn server(inspection: &Inspection) -> Finding {
    match (inspection.in_use, inspection.unclean) {
        (true, _) => Finding::new("server", Level::Ok, "a server is using the directory"),
        (false, false) => Finding::new("server", Level::Ok, "not running; stopped cleanly"),
        (false, true) => Finding::new(
            "server",
            Level::Note,
            "not running; it did not stop cleanly, and the next start takes due timers one by one at first",
        ),
    }
}

fn schema(inspection: &Inspection) -> Finding {
    let (found, known) = (inspection.schema, inspection.schema_known);
    if found > known {
        let detail = format!("{found}, and this binary knows up to {known}: use the newer binary");
        return Finding::new("schema", Level::Problem, detail);
    }
    if found < known {
        let detail = format!("{found}; the next start brings it to {known}");
        return Finding::new("schema", Level::Note, detail);
    }
    Finding::new("schema", Level::Ok, found.to_string())
}

fn integrity(inspection: &Inspection) -> Finding {
    if inspection.damage.is_empty() {
        return Finding::new("integrity", Level::Ok, "SQLite's check found nothing");
    }
    let detail = format!(
        "the file is damaged: stop the server and restore a backup\n{}",
        inspection.damage.join("\n")
    );
    Finding::new("integrity", Level::Problem, detail)
}

fn log(inspection: &Inspection) -> Finding {
    if inspection.log_missing {
        let detail = format!(
            "{} of data, and the log is gone: unless another program has opened and closed the database since, what was committed last is lost; restore both files, or go on without it",
            size(inspection.file_bytes)
        );
        return Finding::new("size", Level::Problem, detail);
    }
    let log = match inspection.log_bytes {
        0 => "no log".to_owned(),
        bytes => format!("{} of log", size(bytes)),
    };
    let detail = format!("{} of data, {log}", size(inspection.file_bytes));
    if inspection.log_bytes > LOG_BYTES_EXPECTED_MAX {
        let detail = format!("{detail}: something reads the file for a long time and holds it");
        return Finding::new("size", Level::Note, detail);
    }
    Finding::new("size", Level::Ok, detail)
}

fn clock(inspection: &Inspection, now_ms: u64) -> Finding {
    let now = time(now_ms);
    if now_ms < FIRST_SENSIBLE_MS {
        let detail = format!("the machine says it is {now}: set its clock");
        return Finding::new("clock", Level::Problem, detail);
    }
    let newest = inspection
        .contents
        .as_ref()
        .and_then(|contents| contents.newest_scheduling_ms);
    let newest = newest.max(inspection.written_at_ms);
    match newest.filter(|newest| *newest > now_ms.saturating_add(CLOCK_BEHIND_MS_MAX)) {
        Some(newest) => Finding::new(
            "clock",
            Level::Problem,
            format!(
                "the machine says it is {now}, but the directory was used at {}: timers wait until \
                 the clock gets there; set it right",
                time(newest)
            ),
        ),
        None => Finding::new("clock", Level::Ok, now),
    }
}

fn wakes(contents: &Contents, repaired: Option<u64>) -> Finding {
    let lanes = &contents.lanes_without_wake;
    let done = match repaired {
        Some(count) => format!("; {count} were missing and are set"),
        None => String::new(),
    };
    if lanes.count == 0 {
        let detail = format!("{}, and every timer has one{done}", contents.wakes);
        return Finding::new("wakes", Level::Ok, detail);
    }
    let places = listed(lanes, |lane| {
        let wake = lane.wake_ms.map_or("no wake".to_owned(), |at_ms| {
            format!("wake {}", time(at_ms))
        });
        format!(
            "{} kind {}: due {}, {wake}",
            lane.partition,
            lane.kind.0,
            time(lane.due_ms)
        )
    });
    let detail = format!(
        "{} missing or late; a running server sets them, or `dueline doctor --repair`{done}{places}",
        lanes.count
    );
    Finding::new("wakes", Level::Problem, detail)
}

fn names(contents: &Contents) -> Finding {
    let adrift = &contents.names_adrift;
    if adrift.count == 0 {
        return Finding::new("names", Level::Ok, "every name points at its timer");
    }
    let places = listed(adrift, |name| {
        let reference = String::from_utf8_lossy(&name.name.reference).into_owned();
        format!(
            "{} kind {}: {reference:?}",
            name.partition, name.name.kind.0
        )
    });
    let detail = format!(
        "{} point at nothing: please report this as a bug{places}",
        adrift.count
    );
    Finding::new("names", Level::Problem, detail)
}

fn timers(contents: &Contents) -> Finding {
    let total = total(contents, |kind| kind.timers);
    let overdue = total_text(contents, |kind| kind.overdue, "due by now");
    let paused = total_text(contents, |kind| kind.paused, "paused by kind and partition");
    let partitions = counted(contents.partitions, "partition");
    let detail = format!("{total} in {partitions}{overdue}{paused}");
    Finding::new("timers", Level::Ok, detail)
}

fn dead(contents: &Contents) -> Finding {
    match total(contents, |kind| kind.dead) {
        0 => Finding::new("dead", Level::Ok, "none"),
        count => Finding::new(
            "dead",
            Level::Note,
            format!("{count} given up; see `dueline dead list PARTITION`"),
        ),
    }
}

fn quarantine(contents: &Contents) -> Finding {
    let (aside, malformed) = (contents.quarantined, contents.malformed);
    if aside == 0 && malformed == 0 {
        return Finding::new("quarantine", Level::Ok, "empty");
    }
    let detail = format!(
        "{} set aside because the key did not decode, {malformed} more to be set aside",
        counted(aside, "row")
    );
    Finding::new("quarantine", Level::Note, detail)
}

fn unknown_kinds(contents: &Contents) -> Option<Finding> {
    let unknown: Vec<String> = contents
        .kinds
        .iter()
        .filter(|(kind, counts)| counts.timers > 0 && !dueline_server::serves(**kind))
        .map(|(kind, counts)| format!("kind {}: {}", kind.0, counted(counts.timers, "timer")))
        .collect();
    let detail = format!("this binary does not fire them: {}", unknown.join(", "));
    (!unknown.is_empty()).then(|| Finding::new("kinds", Level::Note, detail))
}

fn total(contents: &Contents, count: fn(&KindContents) -> u64) -> u64 {
    contents.kinds.values().map(count).sum()
}

fn total_text(contents: &Contents, count: fn(&KindContents) -> u64, what: &str) -> String {
    match total(contents, count) {
        0 => String::new(),
        count => format!(", {count} {what}"),
    }
}

fn listed<T>(places: &Places<T>, describe: impl Fn(&T) -> String) -> String {
    let mut text = String::new();
    for place in &places.named {
        text.push('\n');
        text.push_str(&describe(place));
    }
    let named = u64::try_from(places.named.len()).unwrap_or(u64::MAX);
    if places.count > named {
        text.push_str(&format!("\nand {} more", places.count - named));
    }
    text
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

fn size(bytes: u64) -> String {
    const KIB: u64 = 1_024;
    match bytes {
        small if small < KIB * KIB => format!("{} KiB", small.div_ceil(KIB)),
        large => format!("{} MiB", large.div_ceil(KIB * KIB)),
    }
}

fn time(at_ms: u64) -> String {
    i64::try_from(at_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(|| format!("{at_ms} ms"), |time| format!("{time:.3}"))
}

//! Runs checks one after another, tells the time of each, and closes with a table.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::checks::{Check, Note};
use crate::disk;
use crate::process::Failure;

struct Finished {
    name: &'static str,
    took: Duration,
    result: Result<Note, Failure>,
}

/// Runs the checks in order. A failed check does not stop the others, so that one run shows all there is
/// to mend; the exit code is a failure if any of them failed.
pub(crate) fn all(checks: &[Check]) -> ExitCode {
    let mut finished = Vec::new();
    if let (2.., Some(free)) = (checks.len(), disk::free_bytes()) {
        println!("{}", disk::before_a_whole_run(free));
    }
    for (position, check) in checks.iter().enumerate() {
        println!(
            "\n== [{}/{}] {}: {}",
            position + 1,
            checks.len(),
            check.name,
            check.about
        );
        let started = now();
        let result = (check.run)().map_err(on_a_full_disk);
        let took = started.elapsed();
        match &result {
            Ok(_) => println!("== {} passed in {}", check.name, seconds(took)),
            Err(failure) => println!(
                "== {} FAILED in {}: {}",
                check.name,
                seconds(took),
                failure.text
            ),
        }
        finished.push(Finished {
            name: check.name,
            took,
            result,
        });
    }
    conclude(&finished)
}

/// A full disk ends compilers and tests with words about anything else.
fn on_a_full_disk(mut failure: Failure) -> Failure {
    if let Some(full) = disk::free_bytes().and_then(disk::behind_a_failure) {
        failure.text = format!("{}; {full}", failure.text);
    }
    failure
}

/// Runs one hunt, and closes with what it came to.
pub(crate) fn one(name: &str, hunt: impl FnOnce() -> Result<Note, Failure>) -> ExitCode {
    let started = now();
    let result = hunt();
    let took = seconds(started.elapsed());
    match result {
        Ok(note) => {
            println!("{name} passed in {took}: {}", note.text);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{name} FAILED in {took}: {}", failure.text);
            ExitCode::FAILURE
        }
    }
}

fn conclude(finished: &[Finished]) -> ExitCode {
    println!("\n== summary");
    for check in finished {
        let (word, text) = match &check.result {
            Ok(note) => ("ok", note.text.as_str()),
            Err(failure) => ("FAILED", failure.text.as_str()),
        };
        println!(
            "   {:<8} {:<7} {:>8}  {text}",
            check.name,
            word,
            seconds(check.took)
        );
    }
    let failed = finished
        .iter()
        .filter(|check| check.result.is_err())
        .count();
    if failed > 0 {
        println!("{failed} of {} checks failed", finished.len());
    } else {
        println!("all {} checks passed", finished.len());
    }
    for warning in finished
        .iter()
        .filter_map(|check| check.result.as_ref().ok()?.warning.as_ref())
    {
        println!("WARNING: {warning}");
    }
    let counts = finished.iter().filter_map(|check| match &check.result {
        Ok(note) => note.tests,
        Err(failure) => failure.tests,
    });
    if let Some(counts) = counts.reduce(|sum, other| sum.plus(other)) {
        println!("{counts}");
    }
    if failed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long a check took is shown, nothing depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

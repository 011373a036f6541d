//! Every model holds under all interleavings that are explored, and finds each of its bugs. A bug is looked
//! for by another process, because a broken promise may abort it: the model's threads are in the middle of
//! something.
#![cfg(test)]

use std::process::Command;

use dueline_weave::bugs::BUGS;
use dueline_weave::{Effort, FOLDER, Model, UNPLACED, models, new_folder};

/// Schedules in which a bug must have shown. Most show in a few.
const BUG_SCHEDULES: &str = "1500";

macro_rules! tests_of_models {
    ($($model:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($model)),*];

        $(mod $model {
            #[test]
            fn holds() {
                super::holds(super::named(stringify!($model)));
            }

            #[test]
            fn finds_its_bugs() {
                super::finds_its_bugs(super::named(stringify!($model)));
            }
        })*
    };
}

tests_of_models! {
    a_raised_signal_is_seen
    no_look_is_slept_over
    a_commit_beside_a_reading_is_found
    who_waits_at_the_gate_goes_on
    an_answer_or_its_end_arrives
    what_is_queued_is_served
    a_closed_queue_serves_or_refuses
    a_job_runs_or_is_dropped
    a_woken_job_is_polled
    all_who_wait_for_idle_go_on
    every_apply_is_answered
    nobody_waits_for_time
    a_closing_store_keeps_what_it_acknowledged
    a_failed_store_opens_again
    no_timer_is_slept_over
    driver_and_store_wake_each_other
    a_stop_loses_nothing
    calls_are_settled_or_given_back
    every_stop_ends
}

fn named(name: &str) -> &'static Model {
    models().find(|model| model.name == name).unwrap()
}

fn holds(model: &Model) {
    let explored = model.explore(Effort::default(), None);
    println!("{}: {explored} interleavings", model.name);
    assert!(explored > 1);
}

fn finds_its_bugs(model: &Model) {
    assert!(!model.bugs.is_empty());
    let folder = new_folder();
    for bug in model.bugs {
        let run = Command::new(env!("CARGO_BIN_EXE_dueline-weave"))
            .args(["--schedules", BUG_SCHEDULES, model.name, bug])
            .env("RUST_BACKTRACE", "0")
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(
            !run.status.success() && told.contains("panicked at"),
            "{bug}: {}\n{told}\n{}",
            run.status,
            String::from_utf8_lossy(&run.stdout)
        );
    }
}

#[test]
fn every_model_is_tested() {
    let names: Vec<&str> = models().map(|model| model.name).collect();
    assert_eq!(names, TESTED);
}

/// Where this fails the product has changed at the place of a bug: `src/bugs.rs` has to follow.
#[test]
fn every_bug_has_its_place_in_the_sources() {
    assert_eq!(UNPLACED, [""; 0]);
}

#[test]
fn every_bug_is_looked_for() {
    for bug in BUGS {
        let wanted = models().any(|model| model.bugs.contains(&bug.name));
        assert!(wanted, "{}", bug.name);
    }
}

//! Goal: the histories find the bugs that the driver's rules are there to prevent.
//! Method: each rule is broken on purpose, and some seed among a few hundred must notice. Only in a build
//! with `--cfg dueline_mutants`.
#![cfg(test)]
#![cfg(dueline_mutants)]

mod history;

use dueline::mutants::{Mutant, with_planted};
use history::History;

const SEEDS_MAX: u64 = 400;

fn assert_is_caught(mutant: Mutant, by: &str) {
    let mut others = Vec::new();
    for seed in 0..SEEDS_MAX {
        let broken = with_planted(mutant, || History::new(seed).run());
        if let Some(line) = broken.iter().find(|line| line.contains(by)) {
            println!("{mutant:?} was caught behind {} seeds: {line}", seed + 1);
            return;
        }
        others.extend(broken);
        others.truncate(3);
    }
    panic!("{mutant:?} was not caught by \"{by}\" in {SEEDS_MAX} seeds; others: {others:?}");
}

#[test]
fn an_alarm_that_is_set_after_its_commit_is_caught() {
    assert_is_caught(Mutant::AlarmSetLate, "the first wake is at");
}

#[test]
fn heads_that_are_read_in_another_turn_than_the_alarm_is_set_in_are_caught() {
    assert_is_caught(Mutant::AlarmReadBeforeSet, "the first wake is at");
}

#[test]
fn an_alarm_at_the_time_that_is_served_is_caught() {
    assert_is_caught(Mutant::AlarmAtServed, "the platform's at None");
}

#[test]
fn a_timers_failure_that_is_thrown_is_caught() {
    assert_is_caught(Mutant::AlarmFailureThrown, "an error without a fault");
}

#[test]
fn an_alarm_that_nobody_restores_is_caught() {
    assert_is_caught(Mutant::AlarmNotRestored, "the stored alarm is at");
}

#[test]
fn a_budget_for_each_partition_is_caught() {
    assert_is_caught(Mutant::AlarmBudgetPerPartition, "over its budget");
}

#[test]
fn a_tick_behind_a_crash_that_is_like_any_other_is_caught() {
    assert_is_caught(Mutant::AlarmCautionIgnored, "left at the end");
}

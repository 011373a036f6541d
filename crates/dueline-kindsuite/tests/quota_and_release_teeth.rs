//! Goal: the cases and the random histories of quotas and release gates find the bugs that their rules are
//! there to prevent. Method: each rule is broken on purpose; the case named here must fail, and so must the
//! histories where they reach the rule. Only in a build with `--cfg dueline_mutants`.
#![cfg(test)]
#![cfg(dueline_mutants)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline::mutants::{Mutant, with_planted};
use dueline_kindsuite::world::memory;
use dueline_kindsuite::{Make, publication_recheck, quota_rollup};

fn fails(mutant: Mutant, run: &dyn Fn()) -> bool {
    with_planted(mutant, || catch_unwind(AssertUnwindSafe(run))).is_err()
}

#[track_caller]
fn assert_case_fails(mutant: Mutant, case: fn(Make<'_>)) {
    case(&memory);
    assert!(
        fails(mutant, &|| case(&memory)),
        "{mutant}: the case goes on"
    );
}

#[track_caller]
fn assert_histories_fail(mutant: Mutant, histories: fn()) {
    assert!(fails(mutant, &histories), "{mutant}: the histories go on");
}

#[test]
fn a_roll_up_that_adds_again_is_caught() {
    let mutant = Mutant::RollUpAddsAgain;
    assert_case_fails(mutant, quota_rollup::shards_converge);
    assert_histories_fail(
        mutant,
        quota_rollup::random_histories_count_every_charge_once,
    );
}

#[test]
fn a_roll_up_that_commits_late_is_caught() {
    assert_case_fails(
        Mutant::RollUpCommitsLate,
        quota_rollup::an_absorption_that_is_very_late_brings_nothing_back,
    );
}

#[test]
fn a_stale_view_that_is_trusted_is_caught() {
    assert_case_fails(
        Mutant::StaleViewTrusted,
        quota_rollup::a_view_of_more_than_two_periods_ago_admits_under_the_local_limit,
    );
}

#[test]
fn a_cursor_that_outlives_its_digest_is_caught() {
    let mutant = Mutant::RecheckKeepsCursor;
    assert_case_fails(mutant, publication_recheck::a_new_generation_starts_over);
    let histories = publication_recheck::random_histories_release_nothing_too_early;
    assert_histories_fail(mutant, histories);
}

#[test]
fn a_walk_that_skips_what_is_missing_is_caught() {
    let mutant = Mutant::RecheckSkipsMissing;
    let case = publication_recheck::one_that_is_missing_inside_a_page_is_where_the_walk_goes_on;
    assert_case_fails(mutant, case);
    let histories = publication_recheck::random_histories_release_nothing_too_early;
    assert_histories_fail(mutant, histories);
}

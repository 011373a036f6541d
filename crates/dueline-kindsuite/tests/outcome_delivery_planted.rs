//! Goal: the cases and the histories of the outbox catch bugs, so that they are known to test something. Only
//! a build with `--cfg dueline_mutants` has the bugs.
//! Method: each bug is planted for this thread and must break the case named beside it; those that can show
//! in random histories must break one of them.
#![cfg(test)]
#![cfg(dueline_mutants)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline::mutants::{Mutant, with_planted};
use dueline_kindsuite::outcome_delivery as cases;
use dueline_kindsuite::{Make, world};

const CAUGHT_BY: [(Mutant, fn(Make<'_>)); 6] = [
    (
        Mutant::OutboxClosesUnguarded,
        cases::an_append_while_acking_keeps_one_timer_due_at_once,
    ),
    (
        Mutant::OutboxSleepsUnguarded,
        cases::an_append_just_before_a_sleep_is_not_slept_over,
    ),
    (
        Mutant::OutboxTakesStaleRun,
        cases::a_row_set_aside_by_hand_while_it_is_delivered_is_counted_once,
    ),
    (
        Mutant::RelayForgetsWatermark,
        cases::a_crash_behind_the_target_only_cleans_up,
    ),
    (
        Mutant::RelayTrustsWatermark,
        cases::a_watermark_beyond_the_last_message_holds_up_its_target_alone,
    ),
    (
        Mutant::RelayPassesFailure,
        cases::nothing_passes_a_failure_at_its_target,
    ),
];

const SEEN_IN_HISTORIES: [Mutant; 4] = [
    Mutant::OutboxClosesUnguarded,
    Mutant::OutboxTakesStaleRun,
    Mutant::RelayForgetsWatermark,
    Mutant::RelayPassesFailure,
];

#[test]
fn each_bug_breaks_the_case_of_its_rule() {
    for (mutant, case) in CAUGHT_BY {
        case(&world::memory);
        let broken = catch_unwind(AssertUnwindSafe(|| {
            with_planted(mutant, || case(&world::memory));
        }));
        assert!(broken.is_err(), "{mutant} is not caught");
    }
}

#[test]
fn the_random_histories_catch_those_that_can_show_in_them() {
    for mutant in SEEN_IN_HISTORIES {
        let broken = with_planted(mutant, || {
            catch_unwind(cases::random_histories_lose_nothing_and_keep_the_order)
        });
        assert!(broken.is_err(), "{mutant} is not caught");
    }
}

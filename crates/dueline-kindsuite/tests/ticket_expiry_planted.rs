//! Goal: the cases and the histories of tickets catch bugs, so that they are known to test something. Only a
//! build with `--cfg dueline_mutants` has the bugs.
//! Method: each bug is planted for this thread, must break the case named beside it, and must break one of
//! the random histories.
#![cfg(test)]
#![cfg(dueline_mutants)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline::mutants::{Mutant, with_planted};
use dueline_kindsuite::ticket_expiry as cases;
use dueline_kindsuite::{Make, world};

const CAUGHT_BY: [(Mutant, fn(Make<'_>)); 4] = [
    (
        Mutant::TicketEndsTwice,
        cases::an_expiry_loses_against_an_extension,
    ),
    (
        Mutant::TicketUsedLate,
        cases::the_stores_clock_decides_whether_there_is_time,
    ),
    (
        Mutant::TicketExtensionLost,
        cases::an_extended_ticket_expires_at_its_later_time,
    ),
    (
        Mutant::TicketKeepsKey,
        cases::an_expired_ticket_is_closed_once,
    ),
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
fn the_random_histories_catch_every_bug() {
    for (mutant, _) in CAUGHT_BY {
        let is_broken = |seed: &u64| {
            let run = AssertUnwindSafe(|| cases::model::run(*seed));
            catch_unwind(run).map_or(true, |seen| !seen.broken.is_empty())
        };
        match with_planted(mutant, || (0..300).find(is_broken)) {
            Some(seed) => println!("{mutant}: seed {seed}"),
            None => panic!("{mutant} is not caught"),
        }
    }
}

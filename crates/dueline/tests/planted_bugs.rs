//! Goal: the random histories catch the planted bugs that can show in them, so that they are known to
//! test something. Only a build with `--cfg dueline_mutants` has the bugs.
//! Method: each bug is planted for this thread, and histories run from seed 0 on until one breaks a
//! rule; the same seeds are played by `faults_histories` without a bug. The bugs that need a
//! situation of their own are caught by the tests of that situation.
#![cfg(test)]
#![cfg(dueline_mutants)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong here has found something"
)]

mod model;

use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline::mutants::{Mutant, with_planted};
use model::history::History;

/// The histories that `faults_histories` plays.
const SEEDS: u64 = 200;

const SEEN_IN_HISTORIES: &[Mutant] = &[
    Mutant::UnknownIsCommitted,
    Mutant::UnknownRunsUnguarded,
    Mutant::UnknownVerbIsWritten,
    Mutant::DoubtfulClaimIsRun,
    Mutant::FiresOneEarly,
    Mutant::FireWithoutPresent,
    Mutant::FireWithoutNotBefore,
    Mutant::ClaimWithoutBounds,
    Mutant::RescheduleKeepsGeneration,
    Mutant::PauseIgnored,
    Mutant::RescheduleFromNow,
    Mutant::RunningLosesRequest,
    Mutant::LaterKickWritesNothing,
    Mutant::KickOfDeadWritesNothing,
    Mutant::CancelLeavesRow,
    Mutant::ReplaceLeavesRow,
    Mutant::KicksRace,
    Mutant::RequeueLeavesName,
    Mutant::RequeueKeepsAttempts,
    Mutant::MoveLeavesNameBehind,
    Mutant::MoveCutsPayload,
    Mutant::RetryChangesDueAsAsked,
    Mutant::ClaimNotCounted,
    Mutant::ReleaseCharges,
    Mutant::QuarantineLosesBytes,
    Mutant::RetryChargedTwice,
    Mutant::RetryNeverCharged,
    Mutant::StoreFaultCharged,
    Mutant::PanicEscapes,
    Mutant::NeverExhausted,
    Mutant::ExhaustedVanishes,
    Mutant::UndecodableConsumed,
    Mutant::MalformedHidesLater,
    Mutant::BudgetIgnored,
    Mutant::SlotLeaks,
    Mutant::BatchIsTorn,
    Mutant::SettleForgetsWake,
    Mutant::SettleSetsWakeLate,
    Mutant::SettleFromEarlierRead,
    Mutant::FullLaneDropsWake,
    Mutant::PutTrustsAnyWake,
    Mutant::ResumeSetsNoWake,
];

/// Whether this history breaks a rule, or its panic gets out.
fn is_broken(seed: u64) -> bool {
    let broken = catch_unwind(AssertUnwindSafe(|| History::new(seed).run()));
    broken.map_or(true, |rules| !rules.is_empty())
}

#[test]
fn the_random_histories_catch_every_bug_that_can_show_in_them() {
    let mut missed = Vec::new();
    for mutant in SEEN_IN_HISTORIES {
        let found = with_planted(*mutant, || (0..SEEDS).find(|seed| is_broken(*seed)));
        match found {
            Some(seed) => println!("{mutant}: seed {seed}"),
            None => missed.push(mutant.name()),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

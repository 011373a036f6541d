//! Planted bugs: each must be caught within its seeds.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use dueline::mutants::{Mutant, narrow_generations, plant};
use dueline_sim::{Plan, judge};

/// Bugs that no run of the native driver can show, and the test that catches each. What cannot be
/// simulated here is a tick without stored wakes, a budget of several partitions, and an object.
const ELSEWHERE: &[(Mutant, &str)] = &[
    // Breaks only what a user's own write has broken before.
    (
        Mutant::MoveWithoutNameGuard,
        "dueline/tests/behaviour/moves.rs: a_timer_whose_name_row_is_damaged_fires_by_its_own_row",
    ),
    // A tick with stored wakes reads the lanes that were woken, and none of an unknown kind.
    (
        Mutant::UnknownKindWritten,
        "dueline/tests/behaviour/fairness.rs: \
         six_hundred_rows_of_an_unknown_kind_are_never_written_and_delay_nothing",
    ),
    (
        Mutant::UnknownRowsHideKinds,
        "dueline/tests/behaviour/budgets.rs: many_lanes_share_the_rows_that_a_tick_may_read",
    ),
    // A tick with stored wakes reads no more rows of a kind than it may run.
    (
        Mutant::CappedKindStopsTick,
        "dueline/tests/behaviour/budgets.rs: \
         a_registration_lowers_the_cap_of_its_kind_and_never_raises_it",
    ),
    // A turn of the driver is one partition, which begins with a whole budget.
    (
        Mutant::SpentBudgetSleeps,
        "dueline/tests/behaviour/budgets.rs: \
         partitions_share_one_allowance_and_the_last_is_told_to_come_back_now",
    ),
    // For drivers without stored wakes.
    (
        Mutant::EarliestMissesResume,
        "dueline/tests/scheduling/plan.rs: the_earliest_timer_of_a_batch_is_what_it_makes_due",
    ),
    (
        Mutant::NextWakeMissesLanes,
        "dueline/tests/behaviour/firing.rs: \
         a_timer_of_a_kind_that_had_none_before_the_tick_lowers_the_wake",
    ),
    (
        Mutant::AlarmSetLate,
        "dueline-worker/tests/teeth.rs: an_alarm_that_is_set_after_its_commit_is_caught",
    ),
    (
        Mutant::AlarmReadBeforeSet,
        "dueline-worker/tests/teeth.rs: \
         heads_that_are_read_in_another_turn_than_the_alarm_is_set_in_are_caught",
    ),
    (
        Mutant::AlarmAtServed,
        "dueline-worker/tests/teeth.rs: an_alarm_at_the_time_that_is_served_is_caught",
    ),
    (
        Mutant::AlarmFailureThrown,
        "dueline-worker/tests/teeth.rs: a_timers_failure_that_is_thrown_is_caught",
    ),
    (
        Mutant::AlarmNotRestored,
        "dueline-worker/tests/teeth.rs: an_alarm_that_nobody_restores_is_caught",
    ),
    (
        Mutant::AlarmBudgetPerPartition,
        "dueline-worker/tests/teeth.rs: a_budget_for_each_partition_is_caught",
    ),
    (
        Mutant::AlarmCautionIgnored,
        "dueline-worker/tests/teeth.rs: a_tick_behind_a_crash_that_is_like_any_other_is_caught",
    ),
    // Built-in kinds are not simulated.
    (
        Mutant::LeaseEpochStartsOver,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         epochs_that_start_over_are_caught",
    ),
    (
        Mutant::LeaseSourceNotAsked,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         a_sweep_that_asks_no_source_is_caught",
    ),
    (
        Mutant::LeaseSweepUnguarded,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         a_sweep_without_guards_is_caught",
    ),
    (
        Mutant::LeaseWatermarkFalls,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         a_watermark_that_falls_is_caught",
    ),
    (
        Mutant::ReservationEndUnguarded,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         an_end_without_its_guard_is_caught",
    ),
    (
        Mutant::ReservationAbandonedSilently,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         an_abandonment_that_nobody_is_told_of_is_caught",
    ),
    (
        Mutant::ReservationCommitUnbounded,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         a_commit_without_a_last_moment_is_caught",
    ),
    (
        Mutant::ReservationAbandonedEarly,
        "dueline-kindsuite/tests/lease_and_reservation_teeth.rs: \
         an_abandonment_without_the_skew_is_caught",
    ),
];

/// Runs something on this thread with a bug planted, if one is named.
pub(crate) fn with_planted(mutant: Option<&str>, then: impl FnOnce() -> ExitCode) -> ExitCode {
    let planted = match mutant.map(str::parse::<Mutant>).transpose() {
        Ok(planted) => planted,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    plant(planted);
    let code = then();
    plant(None);
    code
}

/// What the run of a seed breaks with the bug planted, and does not break without.
fn catches(mutant: Mutant, seed: u64) -> Option<String> {
    let plan = Plan::of(seed);
    // Only where two processes draw one generation can a key be taken.
    let needs_collisions = matches!(
        mutant,
        Mutant::MoveWithoutAbsent | Mutant::ScheduleWithoutAbsent
    );
    narrow_generations(plan.generation_bits().filter(|_| needs_collisions));
    plant(Some(mutant));
    let broken = judge(&plan).broken;
    plant(None);
    let new = if broken.is_empty() {
        None
    } else {
        let control: BTreeSet<String> = judge(&plan).broken.iter().map(invariant_of).collect();
        broken
            .into_iter()
            .find(|broken| !control.contains(&invariant_of(broken)))
    };
    narrow_generations(None);
    new
}

/// The front of a sentence that says which promise was broken.
fn invariant_of(broken: &String) -> String {
    broken
        .split(" at event")
        .next()
        .unwrap_or(broken)
        .to_owned()
}

/// Plants each bug in turn.
pub(crate) fn all(only: Option<&str>, seeds: u64) -> ExitCode {
    let mut escaped = Vec::new();
    let (mut caught, mut most, mut elsewhere) = (0, 0, 0);
    let began = Instant::now();
    let chosen = Mutant::ALL
        .iter()
        .filter(|mutant| only.is_none_or(|only| mutant.name() == only));
    for mutant in chosen {
        let test = ELSEWHERE.iter().find(|(it, _)| it == mutant);
        if let Some((_, test)) = test.filter(|_| only.is_none()) {
            elsewhere += 1;
            println!("{:<34} not here: {test}", mutant.name());
            continue;
        }
        let catch = (0..seeds).find_map(|seed| Some((seed, catches(*mutant, seed)?)));
        match catch {
            Some((seed, broken)) => {
                caught += 1;
                most = most.max(seed + 1);
                let short: String = broken.chars().take(110).collect();
                println!("{:<34} seed {seed:>6}  {short}", mutant.name());
            }
            None => {
                println!("{:<34} ESCAPED {seeds} seeds", mutant.name());
                escaped.push(mutant.name());
            }
        }
    }
    println!(
        "{caught} planted bugs caught within {most} seeds, {} escaped, {elsewhere} are caught elsewhere, {:.1} s",
        escaped.len(),
        began.elapsed().as_secs_f64()
    );
    if escaped.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

//! Planted bugs: each must be caught within its seeds.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use dueline::mutants::{Mutant, narrow_generations, plant};
use dueline_sim::{KINDS_FROM, OBJECTS, Plan, judge};

use crate::elsewhere::ELSEWHERE;

/// Bugs that only the seeds of objects show: those of their driver, and what nobody else has: a budget
/// of several partitions, ticks without stored wakes, and one alarm for all that a batch makes due.
const OF_OBJECTS: &[Mutant] = &[
    Mutant::EarliestMissesResume,
    Mutant::NextWakeMissesLanes,
    Mutant::SpentBudgetSleeps,
    Mutant::UnknownKindWritten,
    Mutant::AlarmSetLate,
    Mutant::AlarmReadBeforeSet,
    Mutant::AlarmAtServed,
    Mutant::AlarmFailureThrown,
    Mutant::AlarmDeleteThrown,
    Mutant::AlarmNotRestored,
    Mutant::AlarmRestoredUnmarked,
    Mutant::AlarmBudgetPerPartition,
    Mutant::AlarmCautionIgnored,
    Mutant::AlarmForgetsUnknown,
];

/// Bugs of built-in kinds, which only the seeds of their scenarios show.
const OF_KINDS: &[Mutant] = &[
    Mutant::LeaseEpochStartsOver,
    Mutant::LeaseSourceNotAsked,
    Mutant::LeaseWatermarkFalls,
    Mutant::TicketEndsTwice,
    Mutant::TicketUsedLate,
    Mutant::TicketExtensionLost,
    Mutant::TicketKeepsKey,
    Mutant::RollUpAddsAgain,
    Mutant::OutboxClosesUnguarded,
    Mutant::OutboxTakesStaleRun,
    Mutant::RelayForgetsWatermark,
    Mutant::RelayPassesFailure,
    Mutant::ReservationEndUnguarded,
    Mutant::ReservationAbandonedSilently,
    Mutant::ReservationCommitUnbounded,
    Mutant::ReservationAbandonedEarly,
    Mutant::RecheckKeepsCursor,
    Mutant::RecheckSkipsMissing,
    // Shown by lanes that are paused, alone.
    Mutant::ResumeWakesDueAlone,
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

/// Prints the tests that catch the others, one a line, its fields apart by tabs.
pub(crate) fn elsewhere() -> ExitCode {
    for found in ELSEWHERE {
        println!("elsewhere\t{}", found.fields().join("\t"));
    }
    ExitCode::SUCCESS
}

/// Plants each bug in turn; with `objects` in worlds of objects, whatever it is a bug of.
pub(crate) fn all(only: Option<&str>, seeds: u64, objects: bool) -> ExitCode {
    let mut escaped = Vec::new();
    let (mut caught, mut most, mut elsewhere) = (0, 0, 0);
    let began = Instant::now();
    let chosen = Mutant::ALL
        .iter()
        .filter(|mutant| only.is_none_or(|only| mutant.name() == only));
    for mutant in chosen {
        let found = ELSEWHERE.iter().find(|it| it.mutant == *mutant);
        if let Some(found) = found.filter(|_| only.is_none() && !objects) {
            elsewhere += 1;
            println!("{:<34} not here: {found}", mutant.name());
            continue;
        }
        let in_objects = objects || OF_OBJECTS.contains(mutant);
        let (first, of) = match in_objects {
            true => (OBJECTS, "object"),
            false if OF_KINDS.contains(mutant) => (KINDS_FROM, "kinds"),
            false => (0, "seed"),
        };
        let catch = (0..seeds).find_map(|seed| Some((seed, catches(*mutant, first + seed)?)));
        match catch {
            Some((seed, broken)) => {
                caught += 1;
                most = most.max(seed + 1);
                let short: String = broken.chars().take(110).collect();
                println!("{:<34} {of:<6} {seed:>6}  {short}", mutant.name());
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

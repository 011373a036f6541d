//! Planted bugs: each must be caught within its seeds.

use std::process::ExitCode;

use dueline::mutants::{Mutant, narrow_generations, plant};
use dueline_sim::{Plan, judge};

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

/// Plants each bug in turn.
pub(crate) fn all(only: Option<&str>, seeds: u64) -> ExitCode {
    let mut escaped = Vec::new();
    let mut caught = 0;
    let chosen = Mutant::ALL
        .iter()
        .filter(|mutant| only.is_none_or(|only| mutant.name() == only));
    for mutant in chosen {
        plant(Some(*mutant));
        let catch = (0..seeds).find_map(|seed| {
            let plan = Plan::of(seed);
            narrow_generations(plan.generation_bits());
            let verdict = judge(&plan);
            narrow_generations(None);
            verdict
                .broken
                .into_iter()
                .next()
                .map(|broken| (seed, broken))
        });
        plant(None);
        match catch {
            Some((seed, broken)) => {
                caught += 1;
                let short: String = broken.chars().take(110).collect();
                println!("{:<34} seed {seed:>6}  {short}", mutant.name());
            }
            None => {
                println!("{:<34} ESCAPED {seeds} seeds", mutant.name());
                escaped.push(mutant.name());
            }
        }
    }
    println!("{caught} planted bugs caught, {} escaped", escaped.len());
    if escaped.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

//! Hunts for differences that are not meant: `dueline-compare --scenarios N --first-seed S`.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool answers on its standard output"
)]

use std::process::ExitCode;

use dueline_compare::{Difference, Scenario, Totals, run_scenario, shrink};

const USAGE: &str = "usage: dueline-compare [--scenarios N] [--first-seed S]\n\n  \
    --scenarios N   how many scenarios to run, one a seed (1000)\n  \
    --first-seed S  the seed of the first (0)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((scenarios, first_seed)) = read(&words) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut totals = Totals::default();
    for seed in first_seed..first_seed.saturating_add(scenarios) {
        match run_scenario(&Scenario::of_seed(seed)) {
            Ok(one) => totals.add(&one),
            Err(failure) => {
                println!(
                    "{failure}\n\nas short as it gets: {}",
                    shrink(failure.clone())
                );
                return ExitCode::FAILURE;
            }
        }
    }
    report(&totals, first_seed);
    ExitCode::SUCCESS
}

fn read(words: &[String]) -> Option<(u64, u64)> {
    let (mut scenarios, mut first_seed) = (1_000, 0);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number = words.next()?.parse().ok()?;
        match word.as_str() {
            "--scenarios" => scenarios = number,
            "--first-seed" => first_seed = number,
            _ => return None,
        }
    }
    Some((scenarios, first_seed))
}

fn report(totals: &Totals, first_seed: u64) {
    println!(
        "scenarios      {:>10}, seeds from {first_seed}",
        totals.scenarios
    );
    println!(
        "ticks          {:>10} of each engine, {} without any difference",
        totals.ticks, totals.ticks_alike
    );
    println!(
        "fires          {:>10}, {} of them in the same tick on both sides",
        totals.fires, totals.fires_on_both
    );
    println!("handler runs   {:>10}", totals.runs);
    println!("differences that are meant, by name:");
    for difference in Difference::ALL {
        if difference.is_met_by_scripts() {
            let times = totals.found.get(&difference).copied().unwrap_or(0);
            println!("  {:<30} {times:>10}", difference.to_string());
        }
    }
    println!("no other difference");
}

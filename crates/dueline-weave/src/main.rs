//! `dueline-weave [--schedules N] [--first-seed S] [--more-preemptions P] [model [bug]]`: explores all models,
//! or one, or one with a bug in it.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool answers on its standard output"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use dueline_weave::{Effort, Model, models};

const USAGE: &str =
    "usage: dueline-weave [--schedules N] [--first-seed S] [--more-preemptions P] [model [bug]]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            println!("error: {complaint}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// A broken promise ends it with a panic, and says where; under loom perhaps by an abort, since other threads of
/// the model are in the middle of something.
fn run(arguments: &[String]) -> Result<(), String> {
    let mut effort = Effort::default();
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || {
            let number = rest.next().and_then(|text| text.parse().ok());
            number.ok_or_else(|| format!("`{argument}` takes a whole number"))
        };
        match argument.as_str() {
            "--schedules" => effort.schedules = number()?,
            "--first-seed" => effort.first_seed = number()? as u64,
            "--more-preemptions" => effort.more_preemptions = number()?,
            option if option.starts_with('-') => {
                return Err(format!("there is no option `{option}`"));
            }
            word => words.push(word),
        }
    }
    match words.as_slice() {
        [] => told(models(), effort),
        [name] => told([named(name)?].into_iter(), effort),
        [name, bug] => {
            let model = named(name)?;
            let bug = model.bugs.iter().find(|known| *known == bug);
            let bug = bug.ok_or_else(|| format!("`{name}` has the bugs {:?}", model.bugs))?;
            // A few schedules of each way of drawing before many: most bugs show at once in one of them.
            let rounds = [
                effort.schedules / 16,
                effort.schedules / 4,
                effort.schedules,
            ];
            let explored: u64 = rounds
                .into_iter()
                .map(|schedules| {
                    model.explore(
                        Effort {
                            schedules,
                            ..effort
                        },
                        Some(bug),
                    )
                })
                .sum();
            println!("{name} did not find {bug} in {explored} interleavings");
        }
        _ => return Err("one model and one bug at a time".to_owned()),
    }
    Ok(())
}

fn named(name: &str) -> Result<&'static Model, String> {
    models()
        .find(|model| model.name == name)
        .ok_or_else(|| format!("there is no model `{name}`"))
}

fn told(models: impl Iterator<Item = &'static Model>, effort: Effort) {
    let (mut all, mut count, mut took) = (0, 0, Duration::ZERO);
    for model in models {
        #[allow(
            clippy::disallowed_methods,
            reason = "tells how long it took; the models read no clock"
        )]
        let began = Instant::now();
        let explored = model.explore(effort, None);
        let seconds = began.elapsed().as_secs_f64();
        println!("{}: {explored} interleavings, {seconds:.1} s", model.name);
        all += explored;
        count += 1;
        took += began.elapsed();
    }
    println!(
        "all: {all} interleavings of {count} models, {:.0} s",
        took.as_secs_f64()
    );
}

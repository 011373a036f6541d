//! The project's own commands.
//!
//! `cargo xtask test` is all that CI does: it runs every check below in order, tells the time of each,
//! and closes with a table and the number of tests. `cargo xtask <check>` runs one of them. The program
//! uses the standard library alone, so it is compiled in seconds on a machine that has nothing but Rust.
#![allow(
    clippy::print_stdout,
    reason = "a command line tool answers on its standard output"
)]

mod checks;
mod crash;
mod disk;
mod elsewhere;
mod fuzz;
mod object;
mod options;
mod process;
mod run;
mod sim;
mod test_counts;
mod tidy;
mod wasm;
mod weave;

use std::process::ExitCode;

use checks::CHECKS;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["test"] => run::all(CHECKS),
        ["help" | "--help" | "-h"] => {
            println!("{}", usage());
            ExitCode::SUCCESS
        }
        ["crash", options @ ..] => run::one("crash", || crash::run(options)),
        ["fuzz", options @ ..] if !options.is_empty() => {
            run::one("fuzz", || fuzz::run_targets(options))
        }
        ["object", options @ ..] if !options.is_empty() => {
            run::one("object", || object::measure(options))
        }
        ["sim", options @ ..] if !options.is_empty() => run::one("sim", || sim::run(options)),
        ["weave", options @ ..] if !options.is_empty() => run::one("weave", || weave::run(options)),
        [name] => match CHECKS.iter().find(|check| check.name == *name) {
            Some(check) => run::all(std::slice::from_ref(check)),
            None => wrong_use(&format!("there is no command `{name}`")),
        },
        [] => wrong_use("a command is missing"),
        _ => wrong_use("one command at a time"),
    }
}

fn wrong_use(complaint: &str) -> ExitCode {
    println!("error: {complaint}\n\n{}", usage());
    ExitCode::from(2)
}

fn usage() -> String {
    let mut text = String::from(
        "usage: cargo xtask <command>\n\n  test      every check below, in this order; what CI runs\n",
    );
    for check in CHECKS {
        text.push_str(&format!("  {:<9} {}\n", check.name, check.about));
    }
    text.push_str(&format!(
        "\nhunts, for as long as you ask for:\n  {}\n            kills of a server among eight clients, and the checker\n  {}\n            libFuzzer, over one target or over all\n  {}\n            the package for Durable Objects beside an alarm loop written by hand\n  {}\n            the models under more schedules, and more preemptions\n  {}\n            the simulator: more seeds, or every planted bug\n",
        crash::USAGE,
        fuzz::USAGE,
        object::USAGE,
        weave::USAGE,
        sim::USAGE,
    ));
    text
}

//! The `dueline` command: `serve` runs the server, every other command talks to one or looks at its files.
//!
//! `arguments` says what may be typed, `commands` does it, `client` speaks HTTP, `output` writes tables or
//! JSON, `failure` is what a person reads when something went wrong. The exit code is 0 when it is done, 1
//! when it was refused or failed, 2 when the command was not understood.

#![forbid(unsafe_code)]

mod arguments;
mod client;
mod commands;
mod document;
mod failure;
mod flag;
#[doc(hidden)]
pub mod fuzzing;
mod output;

use std::process::ExitCode;

use arguments::Command;
use failure::Failure;
use output::Output;

/// Reads the arguments of this process, does what they say, and gives its exit code.
pub fn main() -> ExitCode {
    let arguments = arguments::parse();
    let output = Output::new(arguments.output);
    let result = match arguments.command {
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Timer(timer) => commands::timer::run(*timer, &output),
        Command::Dead(dead) => commands::dead::run(dead, &output),
        Command::Partition(partition) => commands::partition::run(partition, &output),
        Command::Doctor(doctor) => commands::doctor::run(&doctor, &output),
    };
    match result {
        Ok(code) => code,
        Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            if matches!(failure, Failure::Usage(_)) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

//! The `dueline` command. All of it is in the library beside this file, so that tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    dueline_cli::main()
}

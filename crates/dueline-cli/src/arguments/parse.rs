//! Reads the command line, and says where a wrong value came from.

use clap::Parser;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

use super::Arguments;

/// Reads the command line and the environment; ends the process on `--help` and on what is not understood.
pub(crate) fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| name_variable(error).exit())
}

/// Whoever sets a variable and types no flag does not know the flag that the complaint is about.
fn name_variable(mut error: clap::Error) -> clap::Error {
    let argument = error.get(ContextKind::InvalidArg);
    let Some(variable) = argument
        .and_then(|argument| match argument {
            ContextValue::String(text) => text.split(' ').next(),
            _ => None,
        })
        .filter(|flag| !std::env::args().any(|typed| is_flag(&typed, flag)))
        .and_then(variable_of)
    else {
        return error;
    };
    let tip = StyledStr::from(format!(
        "the value is that of the environment variable {variable}"
    ));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

/// Whether this word of the command line is the flag, with or without a value.
fn is_flag(typed: &str, flag: &str) -> bool {
    typed
        .strip_prefix(flag)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The variable that stands for a flag, if it is set.
fn variable_of(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?.replace('-', "_");
    let variable = format!("DUELINE_{}", name.to_ascii_uppercase());
    std::env::var_os(&variable).map(|_| variable)
}

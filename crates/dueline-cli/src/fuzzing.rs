//! What the fuzz targets call. Not a part of the API.

use std::ffi::OsString;

use clap::Parser;

use crate::arguments::Arguments;

/// Reads a command line; the first word is the program's name. `Err` is the exit code and the text that
/// is shown instead of doing something: help, a version or a complaint.
pub fn read_arguments(words: Vec<OsString>) -> Result<String, (i32, String)> {
    match Arguments::try_parse_from(words) {
        Ok(arguments) => Ok(format!("{arguments:?}")),
        Err(error) => Err((error.exit_code(), error.render().to_string())),
    }
}

//! `dueline doctor`
use crate::arguments::Doctor;
use crate::failure::Failure;
use crate::output::Output;
use std::process::ExitCode;
pub(crate) fn run(_doctor: &Doctor, _output: &Output) -> Result<ExitCode, Failure> {
    Ok(ExitCode::SUCCESS)
}

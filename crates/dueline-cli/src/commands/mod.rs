//! What each command does, one noun a file.

pub(crate) mod dead;
pub(crate) mod doctor;
mod pages;
pub(crate) mod partition;
pub(crate) mod serve;
pub(crate) mod timer;
mod timer_body;

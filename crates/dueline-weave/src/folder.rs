use std::env;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Names the folder in which models make theirs, for whoever wants to remove what a model that failed has
/// left.
pub const FOLDER: &str = "DUELINE_WEAVE_FOLDER";

const IN_MEMORY: &str = "/dev/shm";

/// A new folder: in memory where the system has such, because thousands of databases are made, and what a
/// disk loses is looked for elsewhere.
///
/// # Panics
/// If there is no place for it.
pub fn new_folder() -> TempDir {
    let place = match env::var_os(FOLDER) {
        Some(place) => PathBuf::from(place),
        None if Path::new(IN_MEMORY).is_dir() => PathBuf::from(IN_MEMORY),
        None => env::temp_dir(),
    };
    let made = tempfile::Builder::new()
        .prefix("dueline-weave-")
        .tempdir_in(place);
    made.unwrap_or_else(|error| panic!("{error}"))
}

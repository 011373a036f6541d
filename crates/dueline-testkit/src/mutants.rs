//! Any test can be run against a planted bug, to see whether it catches it.

use std::sync::Once;

use dueline::mutants::{Mutant, plant_in_process};

/// Plants the bug that `DUELINE_MUTANT` names, once for the whole process, so that every test that
/// makes a clock runs against it.
///
/// # Panics
/// If no bug has that name.
#[allow(
    clippy::panic,
    reason = "a run against no bug would pass for one that caught it not"
)]
pub(crate) fn plant_what_is_asked_for() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(name) = std::env::var("DUELINE_MUTANT") else {
            return;
        };
        match name.parse::<Mutant>() {
            Ok(mutant) => plant_in_process(Some(mutant)),
            Err(unknown) => panic!("DUELINE_MUTANT: {unknown}"),
        }
    });
}

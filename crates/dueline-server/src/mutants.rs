//! Planted bugs of this crate; the list is that of the core, and only a build with `--cfg dueline_mutants`
//! holds them.

#[cfg(dueline_mutants)]
pub(crate) use dueline::mutants::{Mutant, planted};

/// The bugs that are planted here.
#[cfg(not(dueline_mutants))]
#[derive(Clone, Copy)]
pub(crate) enum Mutant {
    ContendedReadGivesUp,
    UrlMeasuredAsTyped,
}

/// Whether this bug is planted here.
#[cfg(not(dueline_mutants))]
pub(crate) const fn planted(_: Mutant) -> bool {
    false
}

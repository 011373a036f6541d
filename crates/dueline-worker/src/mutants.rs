//! Planted bugs of this crate; the list is that of the core, and only a build with `--cfg dueline_mutants`
//! holds them.

#[cfg(dueline_mutants)]
pub(crate) use dueline::mutants::{Mutant, planted};

/// The bugs that are planted here.
#[cfg(not(dueline_mutants))]
#[allow(
    clippy::enum_variant_names,
    reason = "the names are those of the core's list"
)]
#[derive(Clone, Copy)]
pub(crate) enum Mutant {
    AlarmSetLate,
    AlarmReadBeforeSet,
    AlarmAtServed,
    AlarmFailureThrown,
    AlarmDeleteThrown,
    AlarmNotRestored,
    AlarmRestoredUnmarked,
    AlarmServedTrusted,
    AlarmBudgetPerPartition,
    AlarmCautionIgnored,
    AlarmLostWithNothingPending,
    AlarmLongOverIsTrusted,
    AlarmBlindToEarly,
    AlarmLeftWithNothingPending,
    AlarmForgetsUnknown,
    AlarmSpinsForUnknown,
    AlarmPutOffForUnknown,
    WholeKeepsItsFront,
    AlarmAssumedByVerbs,
    AlarmAssumedAtTheEnd,
}

/// Whether this bug is planted here.
#[cfg(not(dueline_mutants))]
pub(crate) const fn planted(_: Mutant) -> bool {
    false
}

//! Bugs planted on purpose, to see that the tests catch them.

#[cfg(feature = "simulated")]
use std::cell::Cell;

/// A rule of the driver, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutant {
    /// The alarm is set after the commit that needs it, in another turn.
    AlarmSetLate,
    /// The heads are read in one turn and the alarm is set in the next.
    AlarmReadBeforeSet,
    /// The alarm may be set at the time that is being served.
    AlarmAtServed,
    /// A timer's failure is thrown to the platform.
    AlarmTimerFailureThrown,
    /// Neither constructor nor requests restore the alarm.
    AlarmNotRestored,
    /// Each partition has a budget of its own.
    AlarmBudgetPerPartition,
    /// The tick behind a crash is like any other.
    AlarmNeverCautious,
}

#[cfg(feature = "simulated")]
thread_local! {
    static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Plants a bug in the drivers of this thread until the guard is dropped.
#[cfg(feature = "simulated")]
#[must_use]
pub fn plant(mutant: Mutant) -> Planted {
    PLANTED.with(|planted| planted.set(Some(mutant)));
    Planted(())
}

/// A planted bug; dropping it takes the bug out.
#[cfg(feature = "simulated")]
#[derive(Debug)]
pub struct Planted(());

#[cfg(feature = "simulated")]
impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.with(|planted| planted.set(None));
    }
}

#[cfg(feature = "simulated")]
pub(crate) fn is_planted(mutant: Mutant) -> bool {
    PLANTED.with(|planted| planted.get() == Some(mutant))
}

#[cfg(not(feature = "simulated"))]
pub(crate) fn is_planted(_: Mutant) -> bool {
    false
}

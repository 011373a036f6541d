//! Every difference between the two engines that is meant, by name.

use std::fmt;

/// A difference that is meant. The comparison allows it under its name and its rule only, and each has a
/// test that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Timers of one kind and one due run in the order of their scheduling here; there by attempt, then
    /// original due, then reference. Under a cap it decides which of them run first.
    OrderWithinOneDue,
    /// A tick's fires are dealt out to the kinds here, so none waits behind another, and a kind that has had
    /// its share may go on behind others; there rows run in due order until 128 commits or 504 rows,
    /// whatever their kinds.
    BudgetsAreDealtToLanes,
    /// `deferred` counts the rows that were read and left here; there every row over the cap of its kind.
    DeferredCountsWhatWasRead,
    /// Attempts are counted on here; there the count stops at 8. The delays agree.
    AttemptsAreCountedOn,
    /// A reschedule into the past waits for the next tick here, floored behind the tick in its key alone;
    /// there it lies at the past due and may run again in the same tick.
    PastReschedulesAreFloored,
    /// A reschedule to the due that fires is accepted here; there it is a failure.
    RescheduleToTheSameDue,
    /// A run whose own guard or deadline is lost is planned again at once, three times, and only then has
    /// failed here; there it is moved by a back-off at the first loss, and a lost guard counts as raced.
    LostGuardsArePlannedAgain,
    /// In a group the handlers behind one that lost its guard run again here; there is no group there.
    GroupsRunAgain,
    /// A handler's batch holds at most 92 operations here; there 98 of a timer that is done.
    HandlerOperationsLimit,
    /// A batch that writes the firing timer's own row is refused here; there the write is lost.
    OwnRowIsRefused,
    /// When the store is unavailable the lane waits with the timer untouched here; there the timer is
    /// charged an attempt and moved, and the next ones run into the same store.
    UnavailableStoreHoldsTheLane,
    /// A commit whose outcome is unknown is read again and counted as that here; there it counts as failed
    /// and raced.
    DoubtfulCommitsAreReadAgain,
    /// The business time is read for each fire here, so a back-off counts from the run; there it is frozen
    /// for the tick.
    TimeIsReadForEachFire,
    /// Rows of a kind without a handler are never written here; there they are moved by a back-off.
    UnknownKindsAreLeft,
    /// A malformed row is set aside once, byte for byte, here; there it stays and is looked at for ever.
    MalformedRowsAreSetAside,
    /// The next wake is the first row that can run here; there it is 5 s away after a race, "now" after any
    /// stop, and none behind a malformed row. A stored wake of ours may be early, never late.
    WakesAreTheFirstRow,
    /// The wake of a row that is overdue is stored at the time of the commit here, so after a step back of
    /// the wall clock the lane waits until that time comes again; there every tick reads everything due.
    StoredWakesWaitForTheClock,
    /// Scheduling the same timer twice makes two here; there the second overwrites the first.
    SameTimerTwice,
    /// A panic of a handler fails its timer here; there it escapes the tick and the rows behind it wait.
    PanicsAreContained,
    /// The smallest scan limit fires here; there a limit of 1 never fires.
    SmallestScanLimitFires,
    /// A step back of the wall clock leaves the time limit of a tick standing here; there it is off.
    TimeLimitIsMonotonic,
    /// A failing burst is spread by jitter here, unless switched off; there it comes back in one
    /// millisecond.
    BurstsAreSpread,
    /// A full store charges no attempt here; there it is a failure like any other.
    FullStoreChargesNoAttempt,
}

impl Difference {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::OrderWithinOneDue,
        Self::BudgetsAreDealtToLanes,
        Self::DeferredCountsWhatWasRead,
        Self::AttemptsAreCountedOn,
        Self::PastReschedulesAreFloored,
        Self::RescheduleToTheSameDue,
        Self::LostGuardsArePlannedAgain,
        Self::GroupsRunAgain,
        Self::HandlerOperationsLimit,
        Self::OwnRowIsRefused,
        Self::UnavailableStoreHoldsTheLane,
        Self::DoubtfulCommitsAreReadAgain,
        Self::TimeIsReadForEachFire,
        Self::UnknownKindsAreLeft,
        Self::MalformedRowsAreSetAside,
        Self::WakesAreTheFirstRow,
        Self::StoredWakesWaitForTheClock,
        Self::SameTimerTwice,
        Self::PanicsAreContained,
        Self::SmallestScanLimitFires,
        Self::TimeLimitIsMonotonic,
        Self::BurstsAreSpread,
        Self::FullStoreChargesNoAttempt,
    ];

    /// Whether random scripts can meet it. The others would need states that one of the two cannot hold;
    /// the tests show them alone.
    pub fn is_met_by_scripts(self) -> bool {
        self < Self::SameTimerTwice
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

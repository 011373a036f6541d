//! Planted bugs: what the simulator and the random histories must catch, or they test nothing.
//!
//! Only a build with `--cfg dueline_mutants` holds them. There [`plant`] switches one on, and the
//! place in the code where its rule lives asks [`planted`]. Every other build sees a constant
//! `false`, so nothing of them is left in it, and this module is not public.
//!
//! A planted bug breaks one rule; its documentation says which, and where that rule is written.

/// Declares the bugs; their list and names exist only where they can be switched.
macro_rules! mutants {
    ($($(#[doc = $rule:literal])+ $variant:ident = $name:literal,)+) => {
        /// A planted bug.
        #[cfg(dueline_mutants)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Mutant { $($(#[doc = $rule])+ $variant,)+ }

        #[cfg(dueline_mutants)]
        impl Mutant {
            /// Every planted bug.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The bug's name in kebab case, as it is printed and parsed.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The rule it breaks and where that is written.
            pub fn rule(self) -> &'static str {
                match self { $(Self::$variant => concat!($($rule),+).trim_ascii_start(),)+ }
            }
        }

        #[cfg(not(dueline_mutants))]
        #[allow(dead_code, reason = "bugs of other crates are named here and planted there")]
        #[derive(Clone, Copy)]
        pub(crate) enum Mutant { $($variant,)+ }
    };
}

mutants! {
    // A commit whose outcome is unknown.
    /// A doubtful commit is re-read before anything follows from it (design, section 8: `Unknown`).
    UnknownIsCommitted = "unknown-is-committed",
    /// What runs again after a doubtful commit is guarded by the timer's row (design, section 8).
    UnknownRunsUnguarded = "unknown-runs-unguarded",
    /// A verb whose commit is in doubt answers `Unknown`, never success (`Timers::schedule`).
    UnknownVerbIsWritten = "unknown-verb-is-written",

    // When and how often a timer fires.
    /// A timer takes effect at its due or later (design, promise 2).
    FiresOneEarly = "fires-one-early",
    /// Every batch of the engine is guarded by the timer's row (design, section 4).
    FireWithoutPresent = "fire-without-present",
    /// The due as asked is kept apart from the key's, so that recurrence does not drift (design, section 6.4).
    RescheduleFromNow = "reschedule-from-now",

    // Verbs of scheduling.
    /// A cancel removes name and row in one batch (design, promise 4).
    CancelLeavesRow = "cancel-leaves-row",

    // Failures.
    /// A failed run is charged once (design, section 8).
    RetryChargedTwice = "retry-charged-twice",
    /// A failed run is charged (design, section 8).
    RetryNeverCharged = "retry-never-charged",
    /// After the last attempt a timer is dead (design, section 8).
    NeverExhausted = "never-exhausted",
    /// An exhausted timer goes to the dead class with its error; nothing vanishes (design, promise 1).
    ExhaustedVanishes = "exhausted-vanishes",
    /// A payload that does not decode goes to the dead class, bytes unchanged (design, section 8).
    UndecodableConsumed = "undecodable-consumed",
    /// A row of a kind that is not registered is never written (design, promise 7).
    UnknownKindWritten = "unknown-kind-written",

    // Budgets and fairness.
    /// A tick starts nothing beyond its budget (design, promise 6).
    BudgetIgnored = "budget-ignored",
    /// No lane uses the fires of another's share (design, promise 6).
    LaneTakesAll = "lane-takes-all",

    // Wakes.
    /// A settle sets the lane's next wake in the transaction that removes the served ones (design, section 3).
    SettleForgetsWake = "settle-forgets-wake",
    /// A wake is never later than the lane's first row (design, section 3).
    SettleSetsWakeLate = "settle-sets-wake-late",

    // Bugs of the drivers and of simulated stores, planted there.
    /// A driver looks at every lane whose wake it has read (design, section 9).
    DriverForgetsLooks = "driver-forgets-looks",
    /// A wake set while the driver sleeps ends the sleep (design, section 9).
    DriverSleepsThroughWake = "driver-sleeps-through-wake",
    /// An alarm that is to ring earlier is set before the commit (design, section 9).
    AlarmSetLate = "alarm-set-late",
    /// The lanes' heads are read in the turn in which the alarm is set (design, section 9).
    AlarmReadBeforeSet = "alarm-read-before-set",
    /// After a failed commit nothing is read until its outcome is settled (design, section 10).
    PlainReadAfterFailedCommit = "plain-read-after-failed-commit",
}

/// Whether this bug is planted here.
#[cfg(not(dueline_mutants))]
pub(crate) const fn planted(_: Mutant) -> bool {
    false
}

#[cfg(dueline_mutants)]
pub(crate) use switch::generation_bits;
#[cfg(dueline_mutants)]
pub use switch::{
    UnknownMutant, narrow_generations, plant, plant_in_process, planted, with_planted,
};

#[cfg(dueline_mutants)]
mod switch {
    use std::cell::Cell;
    use std::fmt;
    use std::str::FromStr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Mutant;

    thread_local! {
        static HERE: Cell<Option<Mutant>> = const { Cell::new(None) };
        static GENERATION_BITS: Cell<Option<u32>> = const { Cell::new(None) };
    }
    /// The place of a bug in [`Mutant::ALL`] and 1; 0 is none.
    static EVERYWHERE: AtomicUsize = AtomicUsize::new(0);

    /// Plants a bug for this thread, in place of the one before; `None` takes it away.
    pub fn plant(mutant: Option<Mutant>) {
        HERE.set(mutant);
    }

    /// Plants a bug for every thread of the process that has none of its own, for drivers with
    /// threads.
    pub fn plant_in_process(mutant: Option<Mutant>) {
        let place = mutant.map_or(0, |mutant| mutant as usize + 1);
        EVERYWHERE.store(place, Ordering::Relaxed);
    }

    /// Whether this bug is planted here.
    pub fn planted(mutant: Mutant) -> bool {
        match HERE.get() {
            Some(here) => here == mutant,
            None => EVERYWHERE.load(Ordering::Relaxed) == mutant as usize + 1,
        }
    }

    /// Runs something on this thread with a bug planted, and plants what was there before.
    pub fn with_planted<T>(mutant: Mutant, run: impl FnOnce() -> T) -> T {
        struct Before(Option<Mutant>);
        impl Drop for Before {
            fn drop(&mut self) {
                plant(self.0);
            }
        }
        let _before = Before(HERE.replace(Some(mutant)));
        run()
    }

    /// Lets the generations drawn on this thread count through this many bits only, 1 to 63, so
    /// that two processes soon draw the same one and keys collide; `None` draws whole ones. No bug
    /// by itself: guards must hold whatever is drawn.
    pub fn narrow_generations(bits: Option<u32>) {
        GENERATION_BITS.set(bits.map(|bits| bits.clamp(1, 63)));
    }

    pub(crate) fn generation_bits() -> Option<u32> {
        GENERATION_BITS.get()
    }

    /// No planted bug has this name.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UnknownMutant(pub String);

    impl fmt::Display for UnknownMutant {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "no planted bug is called {:?}", self.0)
        }
    }

    impl std::error::Error for UnknownMutant {}

    impl FromStr for Mutant {
        type Err = UnknownMutant;

        fn from_str(name: &str) -> Result<Self, Self::Err> {
            let found = Self::ALL.iter().find(|mutant| mutant.name() == name);
            found.copied().ok_or_else(|| UnknownMutant(name.to_owned()))
        }
    }

    impl fmt::Display for Mutant {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.name())
        }
    }
}

//! Planted bugs: what the simulator and the random histories must catch, or they test nothing.
//!
//! Only a build with `--cfg dueline_mutants` holds them. There [`plant`] switches one on, or the
//! environment's `DUELINE_MUTANT`, and the place in the code where its rule lives asks [`planted`]. Every other build sees a constant
//! `false`, so nothing of them is left in it, and this module is not public.
//!
//! A planted bug breaks one rule; its documentation states the rule that is broken, and where it
//! is written: a guarantee of the crate, a question of DESIGN, a section of FORMAT, an item's own
//! documentation.

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
    /// A fire in doubt re-reads its row before anything follows from it (DESIGN: "the outcome is
    /// not known").
    UnknownIsCommitted = "unknown-is-committed",
    /// What runs again after a doubtful commit is guarded by the timer's row (DESIGN: "a timer's
    /// row never change").
    UnknownRunsUnguarded = "unknown-runs-unguarded",
    /// A verb in doubt hands `Unknown` to its caller (DESIGN: "the outcome is not known").
    UnknownVerbIsWritten = "unknown-verb-is-written",
    /// A claim in doubt is not run (DESIGN: "the outcome is not known").
    DoubtfulClaimIsRun = "doubtful-claim-is-run",
    /// A settle in doubt sends its batch again, never the call (DESIGN: "the outcome is not
    /// known").
    DoubtfulSettleCallsAgain = "doubtful-settle-calls-again",

    // When and how often a timer fires.
    /// A timer takes effect at its due or later (guarantee 2).
    FiresOneEarly = "fires-one-early",
    /// Every batch of the engine is guarded by the timer's row (DESIGN: "a timer's row never
    /// change").
    FireWithoutPresent = "fire-without-present",
    /// Every fire carries `NotBefore`, by the store's clock (DESIGN: "clock, sleep and entropy").
    FireWithoutNotBefore = "fire-without-not-before",
    /// A claim is never early and holds only while the clocks agree (`claim_bounds`).
    ClaimWithoutBounds = "claim-without-bounds",
    /// A due in the past runs in the next tick (`Fired::Reschedule`).
    PastRescheduleFiresAgain = "past-reschedule-fires-again",
    /// A `Reschedule` draws a new generation (`Fired::Reschedule`).
    RescheduleKeepsGeneration = "reschedule-keeps-generation",
    /// A call that begins late has less time, so that it ends before its claim
    /// (`ClaimedCall::run`).
    CallOutlivesClaim = "call-outlives-claim",
    /// A claim leaves time to settle behind the deadline of its call (DESIGN: "claimed timers
    /// moved").
    ClaimWithoutSlack = "claim-without-slack",
    /// A run over its deadline is dropped and has failed (`Registration::deadline_ms`).
    DeadlineIgnored = "deadline-ignored",
    /// Ticks that start after a pause fire none of its timers (`Timers::pause`).
    PauseIgnored = "pause-ignored",
    /// The due as asked is kept apart from the key's, so that recurrence does not drift
    /// (`DueTimer::due_at_ms`).
    RescheduleFromNow = "reschedule-from-now",

    // Verbs of scheduling.
    /// A cancel that is acknowledged is final (guarantee 4).
    CancelLeavesRow = "cancel-leaves-row",
    /// A replacement is a delete and a put (DESIGN: "a timer's row never change").
    ReplaceLeavesRow = "replace-leaves-row",
    /// A schedule is guarded by the name row it was planned from (`Timers::plan`).
    KicksRace = "kicks-race",
    /// A schedule is guarded by the absence of its new key (DESIGN: "a timer's row never
    /// change"); see `narrow_generations`.
    ScheduleWithoutAbsent = "schedule-without-absent",
    /// A schedule over a claimed timer is written, whatever runs (`Policy`).
    RunningLosesRequest = "running-loses-request",
    /// Of many that are scheduled together one that loses a guard is planned again
    /// (`Timers::schedule_many`).
    BulkLostIsWritten = "bulk-lost-is-written",
    /// A kick draws a new generation though its due is not earlier (DESIGN: "a kick of an
    /// existing name").
    LaterKickWritesNothing = "later-kick-writes-nothing",
    /// A kick of a dead timer creates it anew (`Policy::KeepEarliest`).
    KickOfDeadWritesNothing = "kick-of-dead-writes-nothing",
    /// A kick does not shorten a back-off (`Policy::KeepEarliest`).
    KickShortensBackOff = "kick-shortens-back-off",
    /// A verb that names a generation changes no other (`GenerationMismatch`).
    IfMatchIgnored = "if-match-ignored",
    /// A name points at its row, wherever it lies (FORMAT: "Name").
    RequeueLeavesName = "requeue-leaves-name",
    /// A requeued timer has its attempts back (`Timers::requeue`).
    RequeueKeepsAttempts = "requeue-keeps-attempts",
    /// A purge removes the name with the dead row (`Timers::purge`).
    PurgeLeavesName = "purge-leaves-name",
    /// A handler's batch may not touch its own timer (DESIGN: "a handler not touch its own
    /// timer").
    HandlerWritesOwnName = "handler-writes-own-name",

    // The engine's moves.
    /// A move is guarded by the absence of its new key (DESIGN: "a timer's row never change");
    /// see `narrow_generations`.
    MoveWithoutAbsent = "move-without-absent",
    /// A move of a named timer guards its name row (`moves`).
    MoveWithoutNameGuard = "move-without-name-guard",
    /// A move rewrites the name row, so that a cancel finds the timer (FORMAT: "Name").
    MoveLeavesNameBehind = "move-leaves-name-behind",
    /// A retry keeps the payload byte for byte (`Fired::Retry`).
    MoveCutsPayload = "move-cuts-payload",
    /// A retry keeps the due as asked (`Fired::Retry`).
    RetryChangesDueAsAsked = "retry-changes-due-as-asked",
    /// On a full store the engine's moves use the reserve (`Batch::uses_reserve`).
    MoveWithoutReserve = "move-without-reserve",
    /// An attempt is counted before its call (DESIGN: "an attempt counted before a call").
    ClaimNotCounted = "claim-not-counted",
    /// A clean stop gives the attempt back (DESIGN: "an attempt counted before a call").
    ReleaseCharges = "release-charges",
    /// The engine makes no timer due earlier than it was found due (DESIGN: "clock, sleep and
    /// entropy").
    SetBackMakesDueEarly = "set-back-makes-due-early",
    /// A row that does not decode is set aside byte for byte (guarantee 7).
    QuarantineLosesBytes = "quarantine-loses-bytes",

    // Failures.
    /// A failure counts one attempt (`HandlerError::new`).
    RetryChargedTwice = "retry-charged-twice",
    /// A failure counts an attempt (`HandlerError::new`).
    RetryNeverCharged = "retry-never-charged",
    /// A fault of the store counts no attempt (`Planning::set_back`).
    StoreFaultCharged = "store-fault-charged",
    /// A failing burst spreads (DESIGN: "the jitter of a retry").
    NoJitter = "no-jitter",
    /// A panic of a handler is its failure (`catch_panic`).
    PanicEscapes = "panic-escapes",
    /// After an unclean stop a timer is claimed before it runs (DESIGN: "an attempt counted
    /// before a call").
    CautionIgnored = "caution-ignored",
    /// After its last attempt a timer is dead (`RetryPolicy::attempts_max`).
    NeverExhausted = "never-exhausted",
    /// A dead timer is kept, with its error (guarantee 1).
    ExhaustedVanishes = "exhausted-vanishes",
    /// A payload that does not decode is set aside, bytes unchanged (guarantee 7).
    UndecodableConsumed = "undecodable-consumed",
    /// Rows of a kind that is not registered are never written (guarantee 7).
    UnknownKindWritten = "unknown-kind-written",
    /// A malformed row hides no later one (DESIGN: "undecodable rows set aside").
    MalformedHidesLater = "malformed-hides-later",

    // Budgets and fairness.
    /// A tick starts nothing beyond its budget (guarantee 6).
    BudgetIgnored = "budget-ignored",
    /// Each lane is sure of its share of the fires (DESIGN: "far more due than a tick may fire").
    LaneTakesAll = "lane-takes-all",
    /// A kind at its cap does not stand in front of another (DESIGN: "the kind stand before the
    /// due time").
    CappedKindStopsTick = "capped-kind-stops-tick",
    /// An unknown kind costs one seek and hides no other (DESIGN: "the kind stand before the due
    /// time").
    UnknownRowsHideKinds = "unknown-rows-hide-kinds",
    /// A driver asks only for the kinds it can run (DESIGN: "a kind it cannot run").
    DriverAsksForUnknownKinds = "driver-asks-for-unknown-kinds",
    /// Finding the lanes never keeps one from its first fire (`TickBudget::max_scanned`).
    ScanLimitStopsFirstFire = "scan-limit-stops-first-fire",
    /// Elapsed time comes from the monotonic clock (`Clock::monotonic`).
    ElapsedByWallClock = "elapsed-by-wall-clock",
    /// A partition that finds the shared budget spent comes back at once
    /// (`RunReport::next_wake_ms`).
    SpentBudgetSleeps = "spent-budget-sleeps",
    /// The slot of a call is free again after it (`ClaimedCall`).
    SlotLeaks = "slot-leaks",

    // Wakes.
    /// A settle sets the lane's next wake (DESIGN: "a wake a row that the store keeps").
    SettleForgetsWake = "settle-forgets-wake",
    /// A wake is never later than the first row (guarantee 5).
    SettleSetsWakeLate = "settle-sets-wake-late",
    /// A settle reads the lane's head in its own transaction (DESIGN: "a wake a row that the
    /// store keeps"); in memory alone.
    SettleFromEarlierRead = "settle-from-earlier-read",
    /// A lane that stopped on budget keeps a wake, at the present (DESIGN: "far more due than a
    /// tick may fire").
    FullLaneDropsWake = "full-lane-drops-wake",
    /// A put arms its lane unless a wake stands at or before it (guarantee 5).
    PutTrustsAnyWake = "put-trusts-any-wake",
    /// A resume sets the wake in its transaction (DESIGN: "a wake a row that the store keeps").
    ResumeSetsNoWake = "resume-sets-no-wake",
    /// A resume sets the wake of what is not yet due too (guarantee 5).
    ResumeWakesDueAlone = "resume-wakes-due-alone",
    /// A batch that resumes a kind makes its partition due at once (`earliest_timer_put`).
    EarliestMissesResume = "earliest-misses-resume",
    /// The next wake of a report covers kinds that appeared in the tick
    /// (`RunReport::next_wake_ms`).
    NextWakeMissesLanes = "next-wake-misses-lanes",

    // Groups.
    /// The handlers behind a lost member are run again (DESIGN: "a group of fires").
    GroupNotRunAgain = "group-not-run-again",
    /// The effects of a lost member are seen by nobody (DESIGN: "a group of fires").
    LostEffectsStayVisible = "lost-effects-stay-visible",
    /// A later handler reads what an earlier one staged (DESIGN: "a group of fires").
    GroupReadsPastStaged = "group-reads-past-staged",
    /// A group stops at the first batch that does not commit (`GroupOutcome`).
    GroupGoesOnAfterLoss = "group-goes-on-after-loss",
    /// A batch is written whole or not at all (`Batch`); in memory alone.
    BatchIsTorn = "batch-is-torn",

    // Built-in kinds.
    /// A delivery gives its outbox up only if nothing was appended meanwhile
    /// (`kinds::outcome_delivery`).
    OutboxClosesUnguarded = "outbox-closes-unguarded",
    /// An append that an outbox goes to sleep over makes the sleep lose (`kinds::outcome_delivery`).
    OutboxSleepsUnguarded = "outbox-sleeps-unguarded",
    /// A run of an outbox is taken only if nothing has left meanwhile (`kinds::outcome_delivery`).
    OutboxTakesStaleRun = "outbox-takes-stale-run",
    /// A relay's target remembers what it has absorbed (`kinds::outcome_delivery`).
    RelayForgetsWatermark = "relay-forgets-watermark",
    /// A watermark beyond the last outcome holds its target up (`kinds::outcome_delivery`).
    RelayTrustsWatermark = "relay-trusts-watermark",
    /// What is behind a failure waits for it, at its target (`kinds::outcome_delivery`).
    RelayPassesFailure = "relay-passes-failure",
    // The built-in kinds.
    /// What ends or keeps a ticket guards its row (`ticket_expiry`).
    TicketEndsTwice = "ticket-ends-twice",
    /// A ticket is not used after its time by the store's clock (`Tickets::consume`).
    TicketUsedLate = "ticket-used-late",
    /// A timer that finds its ticket extended goes on to the later time (`Tickets::plan_extend`).
    TicketExtensionLost = "ticket-extension-lost",
    /// A ticket that ends frees its idempotency key (`ticket_expiry`).
    TicketKeepsKey = "ticket-keeps-key",

    // Bugs of the drivers and of simulated stores, planted there.
    /// A driver looks at every lane whose wake has come (guarantee 5).
    DriverForgetsLooks = "driver-forgets-looks",
    /// A wake that is set while the driver sleeps ends its sleep (guarantee 5).
    DriverSleepsThroughWake = "driver-sleeps-through-wake",
    /// A lane for which a budget left no fire is not held back as one that was refused (guarantee 6).
    BudgetTakenForRefused = "budget-taken-for-refused",
    /// What waits behind the end of a pause is looked at, due or not (guarantee 5).
    ResumeLooksAtDueAlone = "resume-looks-at-due-alone",
    /// A wake that the end of a call has left is looked at (guarantee 5).
    SettledWakesUnnoted = "settled-wakes-unnoted",
    /// What was overdue before the clock was set back, and still is, is looked at (guarantee 5).
    SetBackNotLookedPast = "set-back-not-looked-past",
    /// A wall clock that stands still is asked with a pause (`WallClock::until`).
    StillClockSpins = "still-clock-spins",
    /// Both clocks are read together (`read_together`).
    ClocksReadApart = "clocks-read-apart",
    /// An alarm that is to ring earlier is set before the commit (guarantee 5).
    AlarmSetLate = "alarm-set-late",
    /// The lanes' heads are read in the turn in which the alarm is set (guarantee 5).
    AlarmReadBeforeSet = "alarm-read-before-set",
    /// An alarm is never set at the time that is being served (DESIGN: "one alarm").
    AlarmAtServed = "alarm-at-served",
    /// What a timer causes is not thrown to the platform (DESIGN: "one alarm").
    AlarmFailureThrown = "alarm-failure-thrown",
    /// An alarm that nothing needs and that cannot be deleted is not thrown either (DESIGN: "one alarm").
    AlarmDeleteThrown = "alarm-delete-thrown",
    /// The constructor and every request restore the alarm (DESIGN: "one alarm").
    AlarmNotRestored = "alarm-not-restored",
    /// Who restores an alarm that is due takes the place of a retry, and leaves a mark (DESIGN: "its last
    /// alarm was cut").
    AlarmRestoredUnmarked = "alarm-restored-unmarked",
    /// An alarm that is found at a time that was served comes no more (DESIGN: "one alarm").
    AlarmServedTrusted = "alarm-served-trusted",
    /// All partitions of an object share one budget (`ObjectOptions::budget`).
    AlarmBudgetPerPartition = "alarm-budget-per-partition",
    /// Behind a cut alarm a timer is claimed before it runs (DESIGN: "one alarm").
    AlarmCautionIgnored = "alarm-caution-ignored",
    /// An alarm that was lost while nothing was pending is none of the next timer's (DESIGN: "one
    /// alarm").
    AlarmLostWithNothingPending = "alarm-lost-with-nothing-pending",
    /// An alarm that is long over and not being served is not taken for a timer's (DESIGN: "one
    /// alarm").
    AlarmLongOverIsTrusted = "alarm-long-over-is-trusted",
    /// An instance that knows nothing of the alarm it serves keeps clear of its time
    /// (`AlarmInfo::scheduled_at_ms`).
    AlarmBlindToEarly = "alarm-blind-to-early",
    /// With nothing pending no alarm stays (DESIGN: "one alarm").
    AlarmLeftWithNothingPending = "alarm-left-with-nothing-pending",
    /// A kind without a handler has an alarm within an hour (rule 8 of `dueline-worker`).
    AlarmForgetsUnknown = "alarm-forgets-unknown",
    /// A kind without a handler is looked for once an hour, not whenever it is due (rule 8 of
    /// `dueline-worker`).
    AlarmSpinsForUnknown = "alarm-spins-for-unknown",
    /// Whoever enters does not put off the alarm for a kind without a handler (rule 8 of
    /// `dueline-worker`).
    AlarmPutOffForUnknown = "alarm-put-off-for-unknown",
    /// Of a whole that does not commit nothing does (`ObjectStore::apply_whole`).
    WholeKeepsItsFront = "whole-keeps-its-front",
    /// What a doubted writer remembers is looked at again before it is used (`Writer::doubted`).
    WriterNeverDoubts = "writer-never-doubts",
    /// A verb that changes a wake asks for an alarm that is only remembered (`is_alarm_assumed`).
    AlarmAssumedByVerbs = "alarm-assumed-by-verbs",
    /// So does the end of an alarm that finds the next one set (`AlarmRun`).
    AlarmAssumedAtTheEnd = "alarm-assumed-at-the-end",
    /// After a commit in doubt nothing is read before another has settled it (DESIGN: "the
    /// outcome is not known").
    PlainReadAfterFailedCommit = "plain-read-after-failed-commit",

    // Bugs of the SQLite store and of the server, planted there.
    /// The lock of a file ends with its store (`FileLock`).
    LockLeftToItsFile = "lock-left-to-its-file",
    /// A log that is found at opening is made durable before it is read (`rewrite_in_place`).
    OpenedLogIsTrusted = "opened-log-is-trusted",
    /// A backup that fails leaves nothing (`SqliteStore::backup`).
    FailedBackupLeavesJournal = "failed-backup-leaves-journal",
    /// A request that reads a timer while others replace it looks again (`LOOKS_MAX`).
    ContendedReadGivesUp = "contended-read-gives-up",
    /// A target's URL is measured in the form in which it is kept (`check_target_url`).
    UrlMeasuredAsTyped = "url-measured-as-typed",
    // Built-in kinds: what they share.
    /// Two plans of one reading do not commit in one batch (`store::validate_batch`).
    PlansOverwriteEachOther = "plans-overwrite-each-other",

    // Built-in kinds: leases.
    /// No epoch of a lease is given twice (`kinds::lease_sweep`).
    LeaseEpochStartsOver = "lease-epoch-starts-over",
    /// A lease goes only once its source has said so (`kinds::lease_sweep`).
    LeaseSourceNotAsked = "lease-source-not-asked",
    /// A sweep is guarded by the lease as it was when the source was asked (`kinds::lease_sweep`).
    LeaseSweepUnguarded = "lease-sweep-unguarded",
    /// The watermark of a lease never falls (`kinds::lease_sweep`).
    LeaseWatermarkFalls = "lease-watermark-falls",

    // Built-in kinds: reservations.
    /// A reservation ends once: every end is guarded by the row (`kinds::reservation_reconcile`).
    ReservationEndUnguarded = "reservation-end-unguarded",
    /// Every end is told to the outbox (`kinds::reservation_reconcile`).
    ReservationAbandonedSilently = "reservation-abandoned-silently",
    /// A commit holds only up to its latest time by the store's clock (`kinds::reservation_reconcile`).
    ReservationCommitUnbounded = "reservation-commit-unbounded",
    /// The deadline lies behind the latest commit by the skew (`kinds::reservation_reconcile`).
    ReservationAbandonedEarly = "reservation-abandoned-early",
    /// A timer goes by its own due, not by a clock that may be ahead (`kinds::reservation_reconcile`).
    ReservationHurriedByClock = "reservation-hurried-by-clock",
    // Built-in kinds: quota_rollup.
    /// A roll-up that runs again adds nothing (`quota_rollup`: "absorbed").
    RollUpAddsAgain = "roll-up-adds-again",
    /// A step at the coordinator does not commit late (`quota_rollup`: "in doubt").
    RollUpCommitsLate = "roll-up-commits-late",
    /// A view of more than two periods ago admits under the local limit alone (`Limits::local`).
    StaleViewTrusted = "stale-view-trusted",

    // Built-in kinds: publication_recheck.
    /// What a cursor rests on has changed: the walk starts over (`publication_recheck`: "digest").
    RecheckKeepsCursor = "recheck-keeps-cursor",
    /// A walk stops at the first dependency that is not visible (`publication_recheck`: "stops").
    RecheckSkipsMissing = "recheck-skips-missing",
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
mod switch;

#[cfg(all(test, dueline_mutants))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_kebab_case_unique_and_parses_back() {
        let names: BTreeSet<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
        assert_eq!(names.len(), Mutant::ALL.len());
        for mutant in Mutant::ALL {
            let name = mutant.to_string();
            assert_eq!(name.parse(), Ok(*mutant));
            assert!(
                name.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{name}"
            );
            assert!(
                mutant.rule().contains('('),
                "{name}: where is its rule written?"
            );
        }
        let unknown = "no-such-bug".parse::<Mutant>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "no planted bug is called \"no-such-bug\""
        );
    }

    #[test]
    fn a_bug_of_one_thread_is_not_seen_by_another() {
        let mine = Mutant::NoJitter;
        let elsewhere = with_planted(mine, || {
            assert!(planted(mine));
            assert!(!planted(Mutant::PanicEscapes));
            std::thread::spawn(move || planted(mine)).join().unwrap()
        });
        assert!(!elsewhere);
        assert!(!planted(mine));
    }
}

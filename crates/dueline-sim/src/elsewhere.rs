//! Bugs that no run of the native driver can show, and the test that catches each. `cargo xtask sim` runs
//! them. What cannot be simulated here is time that passes by itself, files, and a server.

use std::fmt;

use dueline::mutants::Mutant;

/// A bug and the test that catches it: one that passes without the bug and fails with it.
pub(crate) struct Elsewhere {
    pub(crate) mutant: Mutant,
    package: &'static str,
    /// The integration test's file; empty for the tests within the library.
    file: &'static str,
    test: &'static str,
}

impl Elsewhere {
    const fn new(
        mutant: Mutant,
        package: &'static str,
        file: &'static str,
        test: &'static str,
    ) -> Self {
        Self {
            mutant,
            package,
            file,
            test,
        }
    }

    /// As a program reads them: bug, package, file, test.
    pub(crate) fn fields(&self) -> [&'static str; 4] {
        let name = self.mutant.name();
        [name, self.package, self.file, self.test]
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = match self.file {
            "" => "src",
            file => file,
        };
        write!(f, "{}, {file}: {}", self.package, self.test)
    }
}

/// All of them.
pub(crate) const ELSEWHERE: &[Elsewhere] = &[
    // Breaks only what a user's own write has broken before.
    Elsewhere::new(
        Mutant::MoveWithoutNameGuard,
        "dueline",
        "behaviour",
        "moves::a_timer_whose_name_row_is_damaged_fires_by_its_own_row",
    ),
    Elsewhere::new(
        Mutant::UnknownRowsHideKinds,
        "dueline",
        "behaviour",
        "budgets::many_lanes_share_the_rows_that_a_tick_may_read",
    ),
    // A tick with stored wakes reads no more rows of a kind than it may run.
    Elsewhere::new(
        Mutant::CappedKindStopsTick,
        "dueline",
        "behaviour",
        "budgets::a_registration_lowers_the_cap_of_its_kind_and_never_raises_it",
    ),
    // A run that is not at rest with no timer left reads the store from end to end, and finds the wake.
    Elsewhere::new(
        Mutant::SettledWakesUnnoted,
        "dueline-tokio",
        "wakes",
        "a_wake_that_the_end_of_a_call_has_left_is_looked_at_though_its_timer_is_gone",
    ),
    // In the end all clocks show the latest time that any has shown, and what waited for it is served.
    Elsewhere::new(
        Mutant::SetBackNotLookedPast,
        "dueline-tokio",
        "clock",
        "what_was_overdue_before_the_clock_jumped_back_and_still_is_does_not_wait",
    ),
    // Nothing of a simulation takes time but what waits for it.
    Elsewhere::new(
        Mutant::ClocksReadApart,
        "dueline-tokio",
        "",
        "wall::tests::what_passes_between_the_two_clocks_is_read_again",
    ),
    // A batch that writes one name twice is refused by every store, so here it costs an attempt all the same.
    Elsewhere::new(
        Mutant::HandlerWritesOwnName,
        "dueline",
        "behaviour",
        "failures::a_handler_that_writes_the_row_of_its_own_timer_has_failed",
    ),
    // What the platform of the simulation does not do.
    Elsewhere::new(
        Mutant::AlarmLostWithNothingPending,
        "dueline-worker",
        "restoring",
        "an_alarm_that_was_lost_while_nothing_was_pending_is_none_of_the_next_timer",
    ),
    Elsewhere::new(
        Mutant::AlarmLongOverIsTrusted,
        "dueline-worker",
        "restoring",
        "an_alarm_that_was_lost_is_not_taken_for_that_of_the_next_timer",
    ),
    Elsewhere::new(
        Mutant::AlarmBlindToEarly,
        "dueline-worker",
        "",
        "alarm::tests::an_instance_that_knows_nothing_keeps_clear_of_an_alarm_that_came_early",
    ),
    Elsewhere::new(
        Mutant::AlarmLeftWithNothingPending,
        "dueline-worker",
        "serving",
        "an_alarm_set_by_the_constructor_does_not_outlive_the_last_timer",
    ),
    // One in some 40,000 seeds of objects comes by: an early alarm, a request before its handler, a storm.
    Elsewhere::new(
        Mutant::AlarmServedTrusted,
        "dueline-worker",
        "restoring",
        "an_alarm_that_is_found_at_the_time_that_was_served_is_not_trusted",
    ),
    // An alarm that comes for nothing breaks no promise of a history.
    Elsewhere::new(
        Mutant::AlarmSpinsForUnknown,
        "dueline-worker",
        "unknown",
        "known_kinds_have_their_alarms_as_if_the_others_were_not_there",
    ),
    // One in some 13,000 seeds of objects comes by: requests build the object again within the hour, and nothing else.
    Elsewhere::new(
        Mutant::AlarmPutOffForUnknown,
        "dueline-worker",
        "unknown",
        "whoever_enters_sets_a_missing_alarm_for_it_and_never_puts_one_off",
    ),
    // Names are read and committed in one turn, so no history loses a guard of a whole.
    Elsewhere::new(
        Mutant::WholeKeepsItsFront,
        "dueline-worker",
        "whole",
        "two_of_one_name_are_none",
    ),
    // No world has an application that takes back what was committed.
    Elsewhere::new(
        Mutant::WriterNeverDoubts,
        "dueline-worker",
        "taking_back",
        "whatever_an_application_takes_back_every_timer_that_is_left_fires",
    ),
    Elsewhere::new(
        Mutant::AlarmAssumedByVerbs,
        "dueline-worker",
        "taking_back",
        "a_verb_has_its_alarm_though_what_is_remembered_of_it_was_taken_back",
    ),
    Elsewhere::new(
        Mutant::AlarmAssumedAtTheEnd,
        "dueline-worker",
        "taking_back",
        "an_alarm_that_was_taken_back_while_another_was_served_is_set_again",
    ),
    // Files and their locks, and the server.
    Elsewhere::new(
        Mutant::LockLeftToItsFile,
        "dueline-sqlite",
        "",
        "lock::tests::a_lock_ends_although_a_program_just_started_has_its_file",
    ),
    Elsewhere::new(
        Mutant::OpenedLogIsTrusted,
        "dueline-faultfs",
        "power_loss",
        "what_was_read_after_a_kill_is_still_there_after_a_power_cut",
    ),
    Elsewhere::new(
        Mutant::FailedBackupLeavesJournal,
        "dueline-faultfs",
        "errors",
        "a_backup_is_whole_or_leaves_nothing_when_a_call_and_all_behind_it_fail",
    ),
    Elsewhere::new(
        Mutant::ContendedReadGivesUp,
        "dueline-server",
        "",
        "routes::store_faults::a_read_that_is_overtaken_again_and_again_is_answered",
    ),
    Elsewhere::new(
        Mutant::UrlMeasuredAsTyped,
        "dueline-server",
        "",
        "guard::target_url::tests::what_is_taken_is_taken_again_in_the_form_it_was_given",
    ),
    // What of built-in kinds no seed of them came by within 2,000: an append in the moment of a sleep, a renewal in
    // that of a sweep, a step that is later than a window, a limit that a stale view lets pass.
    Elsewhere::new(
        Mutant::OutboxSleepsUnguarded,
        "dueline-kindsuite",
        "outcome_delivery",
        "memory::an_append_just_before_a_sleep_is_not_slept_over",
    ),
    Elsewhere::new(
        Mutant::RelayTrustsWatermark,
        "dueline-kindsuite",
        "outcome_delivery",
        "memory::a_watermark_beyond_the_last_message_holds_up_its_target_alone",
    ),
    Elsewhere::new(
        Mutant::LeaseSweepUnguarded,
        "dueline-kindsuite",
        "lease_sweep",
        "memory::a_renewal_before_the_sweep_commits_makes_it_lose",
    ),
    Elsewhere::new(
        Mutant::RollUpCommitsLate,
        "dueline-kindsuite",
        "quota_rollup",
        "memory::an_absorption_that_is_very_late_brings_nothing_back",
    ),
    Elsewhere::new(
        Mutant::StaleViewTrusted,
        "dueline-kindsuite",
        "quota_rollup",
        "memory::a_view_of_more_than_two_periods_ago_admits_under_the_local_limit",
    ),
    // These were not looked for in seeds.
    Elsewhere::new(
        Mutant::PlansOverwriteEachOther,
        "dueline-kindsuite",
        "plans",
        "memory::two_ends_are_not_told_to_one_outbox_in_one_batch",
    ),
    Elsewhere::new(
        Mutant::ReservationHurriedByClock,
        "dueline-kindsuite",
        "reservation_reconcile",
        "memory::a_clock_that_stays_ahead_waits_for_the_moved_time",
    ),
];

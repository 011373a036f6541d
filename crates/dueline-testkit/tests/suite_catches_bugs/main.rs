//! Goal: the conformance suite is no rubber stamp. Method: a sound store is broken in one way at a
//! time; the case that should notice must pass without the bug and fail with it.
#![cfg(test)]

mod broken;

use std::panic::{AssertUnwindSafe, catch_unwind};

use broken::{Bug, make};
use dueline_testkit::conformance::{
    Make, audit, capacity, group_wakes, groups, histories, malformed_wakes, partitions,
    pause_wakes, preconditions, put_wakes, reads, scans, settle_wakes, sizes, time_bounds,
    wake_pages, writes,
};

#[track_caller]
fn catches(bug: Bug, case: impl Fn(Make<'_>)) {
    case(&make(None));
    let result = catch_unwind(AssertUnwindSafe(|| case(&make(Some(bug)))));
    assert!(
        result.is_err(),
        "the case passed a store with the bug {bug:?}"
    );
}

/// One test per bug: `name: bug => case that notices it, ..`.
macro_rules! bugs {
    ($($name:ident: $bug:ident => $($theme:ident::$case:ident),+;)*) => {
        $(
            #[test]
            fn $name() {
                $(catches(Bug::$bug, |make| $theme::$case(make));)+
            }
        )*
    };
}

bugs! {
    guards_that_hide_what_they_saw: HidesObserved =>
        preconditions::a_lost_guard_shows_what_is_there,
        histories::random_histories_keep_the_contract;
    guards_checked_from_the_back: ChecksGuardsBackwards =>
        preconditions::the_first_failure_decides_and_the_index_counts_time_bounds;
    an_index_that_skips_time_bounds: IndexSkipsBounds =>
        preconditions::the_first_failure_decides_and_the_index_counts_time_bounds;
    bounds_that_fail_at_equality: StrictBounds =>
        time_bounds::bounds_hold_at_equality_and_fail_a_millisecond_beyond;
    a_batch_that_loses_and_is_written: WritesLosers =>
        preconditions::a_lost_guard_writes_nothing,
        groups::a_group_stops_at_the_batch_that_loses,
        histories::random_histories_keep_the_contract;
    a_group_that_goes_on_behind_a_loser: GroupGoesOn =>
        groups::a_group_stops_at_the_batch_that_loses,
        histories::random_histories_keep_the_contract;
    a_group_without_settles_behind_a_loser: LoserSkipsSettles =>
        group_wakes::settles_run_behind_a_lost_guard,
        histories::random_histories_keep_the_contract;
    settles_behind_an_error: SettlesBehindErrors =>
        group_wakes::settles_do_not_run_behind_an_error;
    settles_in_front_of_the_batches: SettlesFirst =>
        group_wakes::settles_see_the_batches_of_their_group;
    keys_refused_a_byte_too_early: ShortKeys =>
        sizes::keys_end_at_1024_bytes;
    partitions_that_mix: MixesPartitions =>
        writes::partitions_know_nothing_of_each_other,
        settle_wakes::a_settle_stays_in_its_partition;
    values_in_the_order_of_the_store: SortsGetMany =>
        reads::get_many_answers_in_the_order_of_the_keys,
        histories::random_histories_keep_the_contract;
    a_cursor_on_the_last_page: CursorOnLastPage =>
        scans::an_exact_fit_carries_no_cursor;
    a_page_that_repeats_its_cursor: RepeatsCursorRow =>
        scans::pages_add_up_to_the_range;
    pages_cut_without_a_cursor: LosesCursor =>
        scans::pages_add_up_to_the_range,
        wake_pages::pages_of_wakes_add_up;
    a_limit_of_zero_that_is_accepted: AcceptsLimitZero =>
        scans::a_foreign_cursor_and_a_limit_of_zero_are_invalid,
        wake_pages::a_limit_of_zero_wakes_is_invalid;
    puts_without_a_wake: ForgetsPutWake =>
        put_wakes::the_first_timer_sets_the_wake_at_its_due_or_now,
        put_wakes::an_earlier_timer_wakes_the_lane_earlier,
        audit::a_healthy_store_needs_no_repair,
        histories::random_histories_keep_the_contract;
    resumes_without_a_wake: ForgetsResumeWake =>
        pause_wakes::a_resumed_lane_is_woken_at_its_first_row_or_now,
        pause_wakes::a_lane_resumed_within_a_group_is_woken;
    damaged_rows_without_a_wake: IgnoresDamagedKeys =>
        malformed_wakes::a_key_cut_short_is_woken_for,
        malformed_wakes::a_damaged_row_in_front_is_looked_at_first;
    settles_that_leave_what_was_served: KeepsServedWakes =>
        settle_wakes::the_next_wake_is_the_first_rows_due_or_now,
        settle_wakes::an_empty_lane_gets_no_wake;
    settles_that_take_every_wake: TakesEveryWake =>
        settle_wakes::a_wake_that_was_not_served_stays;
    wakes_of_kinds_nobody_asked_for: IgnoresKinds =>
        wake_pages::wakes_of_other_kinds_stay;
    wakes_that_come_too_late: ExcludesUntil =>
        wake_pages::wakes_come_in_the_order_of_their_time;
    a_walk_that_repeats_its_place: RepeatsPartition =>
        partitions::a_walk_goes_on_when_its_place_is_gone,
        partitions::a_walk_meets_every_partition_once;
    an_audit_that_does_nothing: IdleAudit =>
        audit::a_wake_left_late_by_a_clock_step_is_mended;
    a_reserve_for_nobody: IgnoresReserve =>
        capacity::the_reserve_is_for_batches_that_ask_for_it;
    a_reserve_for_everybody: ReserveForAll =>
        capacity::the_reserve_is_for_batches_that_ask_for_it;
    deletes_refused_as_full: RefusesDeletesWhenFull =>
        capacity::deletes_work_on_a_full_store_and_make_room;
}

#[test]
fn every_case_of_every_theme_is_in_the_suite() {
    let suite = include_str!("../../src/conformance/suite.rs");
    let listed: Vec<&str> = suite.lines().map(str::trim).collect();
    let themes = [
        include_str!("../../src/conformance/audit.rs"),
        include_str!("../../src/conformance/capacity.rs"),
        include_str!("../../src/conformance/group_wakes.rs"),
        include_str!("../../src/conformance/groups.rs"),
        include_str!("../../src/conformance/histories.rs"),
        include_str!("../../src/conformance/malformed_wakes.rs"),
        include_str!("../../src/conformance/partitions.rs"),
        include_str!("../../src/conformance/pause_wakes.rs"),
        include_str!("../../src/conformance/preconditions.rs"),
        include_str!("../../src/conformance/put_wakes.rs"),
        include_str!("../../src/conformance/reads.rs"),
        include_str!("../../src/conformance/reopen.rs"),
        include_str!("../../src/conformance/scans.rs"),
        include_str!("../../src/conformance/settle_wakes.rs"),
        include_str!("../../src/conformance/sizes.rs"),
        include_str!("../../src/conformance/time_bounds.rs"),
        include_str!("../../src/conformance/wake_pages.rs"),
        include_str!("../../src/conformance/writes.rs"),
    ];
    let mut cases = 0;
    for line in themes.iter().flat_map(|theme| theme.lines()) {
        let case = line
            .strip_prefix("pub fn ")
            .and_then(|rest| rest.strip_suffix("(make: Make<'_>) {"));
        if let Some(case) = case {
            cases += 1;
            assert!(
                listed.contains(&format!("{case},").as_str()),
                "{case} is not in the suite"
            );
        }
    }
    assert!(cases > 90, "only {cases} cases were found");
}

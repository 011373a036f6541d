//! Goal: a total is the sum of what its shards have charged, and admissions keep to their bound. Method: the
//! cases of the suite on the store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(quota_rollup;
    shards_converge,
    a_crash_between_the_two_commits_adds_nothing,
    an_absorption_in_doubt_adds_nothing,
    an_absorption_that_is_very_late_brings_nothing_back,
    a_hot_writer_never_makes_a_roll_up_start_over,
    charges_of_the_coordinator_itself_stay_in_the_total,
    a_counter_that_has_decreased_is_taken_as_it_is,
    a_charge_rides_along_and_guards_what_it_read,
    a_charge_of_nothing_writes_nothing,
    a_counter_never_wraps,
    two_charges_of_a_quota_are_not_one_batch,
    a_charge_does_not_commit_behind_its_window,
    a_window_that_is_over_leaves_nothing,
    a_window_is_kept_for_its_grace,
    the_last_shard_takes_the_total_along,
    the_coordinators_own_timer_removes_its_total,
    without_shards_a_window_goes_in_one_commit,
    without_shards_rows_of_older_windows_are_drained,
    a_shard_waits_for_a_version_that_rolls_up,
    a_total_stays_for_the_shard_that_is_late,
    a_crash_while_it_closes_counts_nothing_twice,
    rows_of_older_windows_are_drained_in_pages,
    windows_that_close_at_the_same_time_leave_each_other_alone,
    a_clock_set_back_while_it_closes_loses_no_charge,
    a_corrupt_row_of_the_coordinator_backs_off_and_goes_with_its_window,
    a_corrupt_row_of_the_shard_backs_off_and_goes_with_its_window,
    a_corrupt_view_is_as_good_as_none,
    eight_lost_plans_back_off,
    a_coordinator_that_does_not_answer_is_asked_again,
    a_long_period_is_no_long_back_off,
    a_timer_that_names_no_window_drains,
    a_payload_that_does_not_decode_is_set_aside,
    a_second_timer_of_a_window_changes_nothing,
    the_coordinator_admits_exactly,
    a_shard_without_a_view_admits_under_its_own_limit,
    a_view_counts_what_the_others_had_charged,
    a_view_of_more_than_two_periods_ago_admits_under_the_local_limit,
    a_stale_view_still_refuses_what_was_used_up,
    a_refusal_writes_nothing,
    what_a_quota_costs_is_as_documented,
    rows_of_a_quota_are_as_documented,
    the_overshoot_is_what_the_others_admit_in_three_periods,
);

#[test]
fn random_histories_count_every_charge_once() {
    dueline_kindsuite::quota_rollup::random_histories_count_every_charge_once();
}

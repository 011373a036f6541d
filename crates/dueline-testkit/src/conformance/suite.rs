//! The list of all cases as tests.

/// Expands to one `#[test]` per case of the [suite](crate::conformance): a module per theme.
///
/// Takes the function that makes a fresh store, by a path or as a closure without captures, and
/// behind a `;` the features of the store, of which there may be none:
/// `conformance_suite!(make_store; wakes, capacity, reopen)`.
#[macro_export]
macro_rules! conformance_suite {
    ($make:expr; $($feature:ident),* $(,)?) => {
        $crate::conformance_feature!(base $make);
        $($crate::conformance_feature!($feature $make);)*
    };
}

/// The cases of one feature; part of [`conformance_suite`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_feature {
    (base $make:expr) => {
        $crate::conformance_cases! { $make; preconditions;
            a_lost_guard_shows_what_is_there,
            guards_that_hold_let_the_batch_commit,
            the_first_failure_decides_and_the_index_counts_time_bounds,
            a_lost_guard_writes_nothing,
            guards_see_committed_state_only,
            a_guard_on_the_written_key_is_a_guard,
            a_batch_without_writes_is_a_pure_check,
        }
        $crate::conformance_cases! { $make; time_bounds;
            bounds_hold_at_equality_and_fail_a_millisecond_beyond,
            bounds_go_by_the_clock_at_the_commit,
            a_bound_is_decided_at_its_place_in_the_list,
            bounds_may_lie_at_the_ends_of_time,
            before_1970_every_bound_fails,
            probe_shows_the_clock_of_the_bounds,
        }
        $crate::conformance_cases! { $make; sizes;
            keys_end_at_1024_bytes,
            values_end_at_512_kib,
            batches_end_at_100_operations,
            batches_end_at_1_mib,
            sizes_are_checked_before_anything_is_read,
            an_oversized_batch_stops_its_group_at_its_place,
            partition_names_may_have_256_bytes,
        }
        $crate::conformance_cases! { $make; writes;
            a_later_write_to_a_key_wins,
            deleting_an_absent_key_is_no_error,
            a_put_replaces_the_whole_value,
            keys_and_values_may_be_any_bytes,
            partitions_know_nothing_of_each_other,
            a_dropped_future_leaves_all_or_nothing,
            statistics_count_rows,
        }
        $crate::conformance_cases! { $make; groups;
            batches_of_a_group_see_those_before_them,
            a_group_stops_at_the_batch_that_loses,
            a_group_stops_at_a_time_bound,
            a_batch_that_lost_leaves_nothing_for_later_guards,
            an_empty_group_is_no_error,
            a_group_may_hold_a_thousand_batches,
        }
        $crate::conformance_cases! { $make; reads;
            get_many_answers_in_the_order_of_the_keys,
            get_many_takes_more_keys_than_a_batch_may_hold,
            a_partition_nobody_has_written_is_empty,
            reads_see_every_commit_before_them,
        }
        $crate::conformance_cases! { $make; scans;
            rows_come_in_the_order_of_raw_bytes,
            the_start_is_in_and_the_end_is_out,
            pages_add_up_to_the_range,
            an_exact_fit_carries_no_cursor,
            a_cursor_outlives_its_row,
            an_inverted_range_is_empty,
            a_foreign_cursor_and_a_limit_of_zero_are_invalid,
            long_ranges_are_followed_to_their_end,
            large_values_come_whole,
            scan_many_answers_a_prefix_of_the_ranges,
            scan_many_takes_256_ranges,
        }
    };
    (wakes $make:expr) => {
        $crate::conformance_cases! { $make; put_wakes;
            the_first_timer_sets_the_wake_at_its_due_or_now,
            an_earlier_timer_wakes_the_lane_earlier,
            timers_of_one_batch_wake_the_lane_at_the_earliest,
            a_moved_timer_is_woken_for,
            every_lane_has_wakes_of_its_own,
            no_timer_no_wake,
            a_put_over_a_timer_keeps_the_wake,
            before_1970_a_lane_is_woken_at_its_due,
        }
        $crate::conformance_cases! { $make; pause_wakes;
            a_resumed_lane_is_woken_at_its_first_row_or_now,
            a_timer_put_during_a_pause_is_found_afterwards,
            a_batch_may_resume_and_write_timers,
            a_pause_and_a_resume_in_one_batch_end_as_the_last_says,
            a_lane_resumed_within_a_group_is_woken,
            a_pause_stops_one_lane_only,
            a_needless_resume_is_no_error,
            a_resume_that_loses_its_guard_wakes_nobody,
        }
        $crate::conformance_cases! { $make; settle_wakes;
            the_next_wake_is_the_first_rows_due_or_now,
            an_empty_lane_gets_no_wake,
            several_wakes_of_a_lane_are_served_together,
            a_wake_that_was_not_served_stays,
            a_settle_may_serve_nothing,
            a_settle_may_be_repeated,
            a_lane_with_due_rows_left_goes_behind_the_others,
            a_settle_stays_in_its_partition,
        }
        $crate::conformance_cases! { $make; group_wakes;
            settles_see_the_batches_of_their_group,
            a_group_may_hold_settles_alone,
            settles_run_behind_a_lost_guard,
            settles_do_not_run_behind_an_error,
            timers_put_by_a_group_are_woken_for,
            a_lane_may_be_settled_twice_in_a_group,
        }
        $crate::conformance_cases! { $make; malformed_wakes;
            a_key_cut_short_is_woken_for,
            kind_zero_is_a_lane,
            the_last_kind_is_a_lane,
            a_due_beyond_the_last_time_is_woken_for_at_the_last_time,
            a_damaged_row_in_front_is_looked_at_first,
        }
        $crate::conformance_cases! { $make; wake_pages;
            wakes_come_in_the_order_of_their_time,
            wakes_of_other_kinds_stay,
            pages_of_wakes_add_up,
            the_last_page_of_wakes_carries_no_cursor,
            a_cursor_outlives_its_wake,
            a_page_of_wakes_may_be_cut_short,
            a_limit_of_zero_wakes_is_invalid,
        }
        $crate::conformance_cases! { $make; partitions;
            a_walk_meets_every_partition_once,
            an_empty_store_has_no_partitions,
            a_partition_without_rows_and_wakes_is_not_met,
            a_walk_goes_on_when_its_place_is_gone,
            a_limit_of_zero_partitions_is_invalid,
        }
        $crate::conformance_cases! { $make; audit;
            a_healthy_store_needs_no_repair,
            an_audit_of_nothing_ends_at_once,
            a_wake_left_late_by_a_clock_step_is_mended,
            an_audit_of_zero_partitions_is_invalid,
        }
        $crate::conformance_cases! { $make; histories;
            random_histories_keep_the_contract,
        }
    };
    (capacity $make:expr) => {
        $crate::conformance_cases! { $make; capacity;
            a_batch_refused_as_full_leaves_nothing,
            a_full_store_still_answers,
            deletes_work_on_a_full_store_and_make_room,
            the_reserve_is_for_batches_that_ask_for_it,
            a_group_stops_where_the_store_is_full,
            lanes_are_settled_on_a_full_store,
        }
    };
    (reopen $make:expr) => {
        $crate::conformance_cases! { $make; reopen;
            rows_and_wakes_outlive_the_process,
            a_reopened_store_keeps_setting_wakes,
            an_unclean_stop_is_known,
        }
    };
}

/// One theme as a module of tests; part of [`conformance_suite`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($make:expr; $theme:ident; $($case:ident,)*) => {
        mod $theme {
            #[allow(unused_imports, reason = "the factory may be a closure or a full path")]
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::conformance::$theme::$case(&$make);
                }
            )*
        }
    };
}

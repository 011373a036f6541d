//! Goal: a ticket is opened once for a key, counted, and ends exactly once, whatever fails. Method: the cases
//! of the suite on the store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(ticket_expiry;
    a_ticket_is_opened_with_its_timer_and_counted,
    open_tickets_are_listed_in_the_order_of_their_opening,
    a_key_of_no_ticket_ends_no_list,
    the_same_request_gets_the_same_ticket,
    another_request_under_the_key_is_refused,
    a_key_is_free_when_its_ticket_has_ended,
    a_limit_refuses_with_its_figures,
    the_last_unit_is_given_once,
    eight_lost_races_are_contended,
    fields_over_their_limits_are_refused_with_the_figure,
    an_unknown_outcome_is_settled_by_asking_again,
    a_plan_commits_with_the_callers_writes,
    a_consumed_ticket_is_gone_and_its_timer_drains,
    a_released_ticket_frees_its_resource_at_once,
    a_ticket_is_not_used_after_its_time,
    the_stores_clock_decides_whether_there_is_time,
    a_use_commits_with_what_it_is_for,
    a_use_and_an_expiry_cannot_both_commit,
    an_extended_ticket_expires_at_its_later_time,
    an_extended_ticket_is_not_closed_by_a_clock_that_is_ahead,
    an_extension_never_shortens,
    an_extension_ends_by_the_latest_due,
    an_expiry_loses_against_an_extension,
    a_cancelled_ticket_is_closed_by_its_timer_at_once,
    a_ticket_cancelled_by_a_clock_that_is_ahead_is_not_used,
    a_timer_that_is_not_the_tickets_drains,
    an_expired_ticket_is_closed_once,
    a_plain_ticket_leaves_nothing,
    a_group_counts_down_to_no_row,
    a_failed_commit_never_closes_twice,
    a_failed_read_only_delays,
    the_largest_ticket_fits_its_batches,
    a_malformed_reference_goes_to_the_dead_class,
    an_expired_ticket_has_its_session_aborted_first,
    a_failed_abort_is_told_and_blocks_nothing,
    an_abort_that_panics_is_told_and_blocks_nothing,
    only_so_many_go_out_in_a_tick,
    a_ticket_that_goes_on_keeps_its_session,
    a_cancelled_ticket_has_its_session_aborted,
    no_session_is_aborted_while_its_ticket_can_be_used,
    a_hook_writes_with_the_end_of_a_ticket,
    every_end_has_its_hook,
    a_hook_that_lost_its_guard_is_asked_again,
    a_hook_that_fails_keeps_the_ticket,
    a_ticket_with_a_damaged_row_is_tried_once_a_minute,
    a_repaired_ticket_is_tried_at_once,
    damaged_tickets_starve_nobody,
    the_verbs_refuse_a_damaged_row,
    a_discarded_ticket_is_counted_out,
    repairs_commit_with_other_writes,
    a_counter_is_counted_anew,
    a_recount_holds_against_openings,
    a_damaged_row_of_a_ticket_set_aside_loses_nothing,
    a_ticket_set_aside_can_be_mended_with_a_later_time,
    ten_thousand_expire_in_groups,
    ten_thousand_expire_one_by_one,
    ten_thousand_expire_with_outcomes,
    ten_thousand_expire_with_sessions,
    the_verbs_cost_what_they_say,
    the_rows_are_those_of_the_format,
);

// Not for objects, whose suite is the list above: their host bounds what it asks of the application.
#[test]
fn a_hook_that_hangs_ends_its_verb() {
    for make in [
        &dueline_kindsuite::world::memory as dueline_kindsuite::Make<'_>,
        &support::sqlite,
    ] {
        dueline_kindsuite::ticket_expiry::a_hook_that_hangs_ends_its_verb(make);
    }
}

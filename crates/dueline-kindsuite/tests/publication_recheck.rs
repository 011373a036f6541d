//! Goal: a record is released when all its dependencies are visible, and never before. Method: the cases of
//! the suite on the store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(publication_recheck;
    a_record_without_dependencies_is_released_at_once,
    a_record_is_released_when_all_are_visible,
    a_late_one_is_where_the_walk_goes_on,
    one_that_is_missing_inside_a_page_is_where_the_walk_goes_on,
    a_restart_goes_on_at_the_durable_cursor,
    dependencies_are_walked_in_their_order,
    other_partitions_may_lie_in_another_store,
    local_ones_are_looked_at_again_in_every_fire,
    an_application_that_knows_better_need_not_wait,
    a_new_generation_starts_over,
    other_obligations_start_over,
    other_dependencies_start_over,
    what_was_withdrawn_before_a_change_is_seen_after_it,
    an_open_obligation_holds_everything,
    a_checkpoint_loses_to_a_change,
    a_release_loses_to_a_change,
    a_release_loses_to_a_withdrawal_at_home,
    a_new_publication_takes_the_run_its_effect,
    a_record_that_is_gone_takes_its_timer_along,
    a_record_has_one_timer,
    a_long_walk_takes_as_many_fires_as_it_must,
    a_shared_allowance_is_not_exceeded,
    a_slow_walk_keeps_what_it_has_seen,
    many_local_ones_are_read_in_pages,
    a_release_stays_within_its_batch,
    a_cursor_that_does_not_decode_fails,
    a_cursor_behind_the_last_dependency_is_refused,
    a_partition_that_does_not_answer_backs_off,
    a_record_may_not_have_too_many_dependencies,
    a_dependency_that_is_named_twice_counts_once,
    a_gate_that_errs_or_hangs_loses_nothing,
    a_gate_that_panics_loses_nothing,
    a_process_that_is_far_behind_waits_for_its_clock,
    a_release_does_not_commit_late,
    a_release_in_doubt_happens_once,
    what_a_release_costs_is_as_documented,
    the_cursor_is_as_documented,
);

#[test]
fn random_histories_release_nothing_too_early() {
    dueline_kindsuite::publication_recheck::random_histories_release_nothing_too_early();
}

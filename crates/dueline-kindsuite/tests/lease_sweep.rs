//! Goal: a lease has at most one holder, its epochs only grow, and it goes only once it has expired and its
//! holder's work has drained. Method: the cases of the suite on the store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(lease_sweep;
    a_lease_has_one_holder,
    an_expired_lease_is_held_until_it_is_swept,
    two_grants_of_one_reading_make_one_holder,
    a_grant_commits_with_the_callers_writes_or_not_at_all,
    epochs_grow_over_release_and_sweep,
    a_renewal_keeps_the_epoch_and_never_shortens,
    an_old_epoch_neither_renews_nor_releases,
    a_stale_holders_writes_lose_at_the_fence,
    what_is_forgotten_begins_anew,
    limits_of_leases_are_refused_with_their_figures,
    a_verb_that_loses_starts_over_and_gives_up_after_eight,
    a_handler_grants_through_the_reads_of_its_context,
    expiry_deletes_lease_and_timer_in_one_batch,
    a_timer_without_a_lease_drains,
    a_stale_timer_drains,
    a_foreign_timer_of_the_name_drains,
    a_renewal_before_the_sweep_commits_makes_it_lose,
    a_clock_that_was_set_back_keeps_the_lease_to_its_end,
    a_clock_ahead_of_the_stores_ends_no_lease_early,
    work_that_is_left_keeps_the_lease_and_raises_its_watermark,
    the_longest_recheck_is_the_latest_due,
    a_lease_that_is_kept_long_is_metered_once_a_check,
    a_source_that_gives_no_answer_keeps_the_lease_for_ever,
    a_row_that_does_not_decode_is_kept_and_tried_again,
    a_lease_without_its_epoch_is_kept,
    two_timers_of_one_due_sweep_once,
    what_leases_cost_is_as_documented,
    rows_of_leases_are_as_documented,
);

#[test]
fn random_histories_keep_one_holder_and_growing_epochs() {
    dueline_kindsuite::lease_sweep::random_histories_keep_one_holder_and_growing_epochs();
}

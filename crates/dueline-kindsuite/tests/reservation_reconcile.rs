//! Goal: a reservation ends once: committed in time, aborted, or abandoned at its deadline. Method: the cases
//! of the suite on the store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(reservation_reconcile;
    a_reservation_and_its_timer_are_one_batch,
    an_id_is_reserved_once,
    a_reservation_ends_in_one_way,
    of_two_ends_planned_from_one_reading_one_loses,
    a_commit_holds_to_the_last_millisecond_by_the_stores_clock,
    the_serial_keeps_a_late_commit_off_the_next_of_its_id,
    an_extension_keeps_the_timer_and_moves_the_deadline,
    an_end_is_told_in_its_own_batch,
    the_caller_may_write_the_messages,
    limits_of_reservations_are_refused_with_their_figures,
    the_largest_reservation_ends_within_a_handlers_batch,
    what_nobody_settles_is_abandoned_at_its_deadline_and_not_before,
    a_late_apply_loses_its_guard,
    an_end_before_the_deadlines_commit_makes_it_lose,
    many_that_share_a_deadline_and_an_outbox_are_told_each_once,
    a_timer_without_a_reservation_drains,
    a_payload_of_another_version_is_set_aside,
    a_row_that_does_not_decode_is_kept_and_starves_nobody,
    a_clock_ahead_of_the_stores_abandons_nothing_early,
    a_clock_that_stays_ahead_waits_for_the_moved_time,
    an_outbox_that_does_not_decode_keeps_the_reservation_pending,
    a_fire_in_doubt_ends_it_once,
    what_an_abandonment_is_to_write_is_one_with_it,
    the_same_timer_removes_what_was_kept_long_enough,
    a_retention_that_is_over_by_the_deadline_purges_at_once,
    without_retention_the_row_goes_with_the_end,
    without_an_end_of_retention_it_stays_until_it_is_forgotten,
    the_timer_of_a_forgotten_one_leaves_the_next_alone,
    what_reservations_cost_is_as_documented,
    ten_thousand_reservations_cost_as_documented,
    rows_of_reservations_are_as_documented,
);

#[test]
fn random_histories_end_every_reservation_once() {
    dueline_kindsuite::reservation_reconcile::random_histories_end_every_reservation_once();
}

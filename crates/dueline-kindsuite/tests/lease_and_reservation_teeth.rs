//! Goal: the cases and the random histories of leases and reservations find the bugs that their rules are
//! there to prevent. Method: each rule is broken on purpose; the case named here must fail, and so must the
//! histories. Only in a build with `--cfg dueline_mutants`.
#![cfg(test)]
#![cfg(dueline_mutants)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline::mutants::{Mutant, with_planted};
use dueline_kindsuite::world::memory;
use dueline_kindsuite::{Make, lease_sweep, reservation_reconcile};

#[track_caller]
fn assert_is_caught(mutant: Mutant, case: fn(Make<'_>), histories: fn()) {
    let fails =
        |run: &dyn Fn()| with_planted(mutant, || catch_unwind(AssertUnwindSafe(run))).is_err();
    case(&memory);
    assert!(fails(&|| case(&memory)), "{mutant}: the case goes on");
    assert!(fails(&histories), "{mutant}: the histories go on");
}

fn of_leases(mutant: Mutant, case: fn(Make<'_>)) {
    let histories = lease_sweep::random_histories_keep_one_holder_and_growing_epochs;
    assert_is_caught(mutant, case, histories);
}

fn of_reservations(mutant: Mutant, case: fn(Make<'_>)) {
    let histories = reservation_reconcile::random_histories_end_every_reservation_once;
    assert_is_caught(mutant, case, histories);
}

#[test]
fn epochs_that_start_over_are_caught() {
    of_leases(
        Mutant::LeaseEpochStartsOver,
        lease_sweep::epochs_grow_over_release_and_sweep,
    );
}

#[test]
fn a_sweep_that_asks_no_source_is_caught() {
    of_leases(
        Mutant::LeaseSourceNotAsked,
        lease_sweep::work_that_is_left_keeps_the_lease_and_raises_its_watermark,
    );
}

#[test]
fn a_sweep_without_guards_is_caught() {
    of_leases(
        Mutant::LeaseSweepUnguarded,
        lease_sweep::a_renewal_before_the_sweep_commits_makes_it_lose,
    );
}

#[test]
fn a_watermark_that_falls_is_caught() {
    of_leases(
        Mutant::LeaseWatermarkFalls,
        lease_sweep::work_that_is_left_keeps_the_lease_and_raises_its_watermark,
    );
}

#[test]
fn a_timer_that_goes_by_a_clock_ahead_is_caught() {
    let case: fn(Make<'_>) =
        reservation_reconcile::a_clock_that_stays_ahead_waits_for_the_moved_time;
    case(&memory);
    let broken = with_planted(Mutant::ReservationHurriedByClock, || {
        catch_unwind(AssertUnwindSafe(|| case(&memory)))
    });
    assert!(broken.is_err(), "its runs fail until the time is there");
}

#[test]
fn an_end_without_its_guard_is_caught() {
    of_reservations(
        Mutant::ReservationEndUnguarded,
        reservation_reconcile::of_two_ends_planned_from_one_reading_one_loses,
    );
}

#[test]
fn an_abandonment_that_nobody_is_told_of_is_caught() {
    of_reservations(
        Mutant::ReservationAbandonedSilently,
        reservation_reconcile::what_nobody_settles_is_abandoned_at_its_deadline_and_not_before,
    );
}

#[test]
fn a_commit_without_a_last_moment_is_caught() {
    of_reservations(
        Mutant::ReservationCommitUnbounded,
        reservation_reconcile::a_commit_holds_to_the_last_millisecond_by_the_stores_clock,
    );
}

#[test]
fn an_abandonment_without_the_skew_is_caught() {
    of_reservations(
        Mutant::ReservationAbandonedEarly,
        reservation_reconcile::an_extension_keeps_the_timer_and_moves_the_deadline,
    );
}

//! Goal: every fault that can be asked for comes about, and the engine makes of it what it promises. Method:
//! the cases of the suite on the store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(test_kind;
    a_timer_without_faults_succeeds_once,
    so_many_failures_come_before_success,
    a_panic_is_a_failure,
    as_many_failures_as_attempts_end_in_the_dead_class,
    a_requeued_timer_goes_on_in_its_script,
    a_script_goes_on_in_another_process,
    an_uncharged_failure_never_ends_in_the_dead_class,
    a_lost_guard_is_planned_again,
    another_fault_may_come_behind_a_lost_guard,
    a_hanging_run_is_dropped_at_its_deadline,
    an_unknown_outcome_is_settled,
    a_timer_can_be_given_up_or_undecodable,
    a_reschedule_into_the_past_runs_in_the_next_tick,
    the_script_is_that_of_the_format,
    the_rows_are_those_of_the_format,
);

//! Goal: an outbox delivers every outcome at least once and in order. Method: the cases of the suite on the
//! store in memory and on SQLite.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(outcome_delivery;
    appending_wakes_an_empty_outbox_once,
    appending_from_the_same_reading_loses,
);

//! Goal: a timer that an older handler could not decode runs when a newer one is there.
#![cfg(test)]

mod home;

use dueline::timers::{HandlerError, Registration};
use dueline_testkit::handler;
use home::handlers::{Seen, notes};
use home::{A, Home, START_MS};

#[test]
fn a_newer_codec_brings_back_what_an_older_one_could_not_decode() {
    let home = Home::new();
    let older = handler(|_, _| Box::pin(async { Err(HandlerError::undecodable("too new")) }));
    let driver = home.driver([(A, Registration::inline(older))]);
    home.schedule(&driver, A, "a", START_MS + 1_000);
    assert_eq!(home.next_alarm(&driver).unwrap().total.dead, 1);
    assert_eq!(home.alarm_ms(), None);
    assert_eq!(home.run(driver.requeue_undecodable()).unwrap(), 0);

    let seen = Seen::default();
    let newer = Registration::inline(notes(&seen)).codec_version(1);
    let driver = home.driver([(A, newer)]);
    assert_eq!(home.run(driver.requeue_undecodable()).unwrap(), 1);
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
    assert_eq!(seen.all(), ["a"]);
}

//! Goal: whatever happens to an object, its timers fire once, and its alarm is never missing or late.
//! Method: random histories of one simulated object: requests and alarms switched between any two of
//! their turns, alarms late, early, twice, retried and given up, crashes that lose un-synced turns, traps,
//! refused calls, clock steps; the alarm is looked at after every turn, every durable commit by the
//! testkit's ledger, and what is left is worked off by alarms alone. A failure names its seed.
#![cfg(test)]

mod history;

use history::{History, Seen, seeds};

#[test]
fn no_random_history_of_an_object_breaks_a_promise() {
    let mut broken = Vec::new();
    let mut seen = Seen::default();
    for seed in seeds(0..150) {
        let mut history = History::new(seed);
        broken.extend(history.run());
        seen.add(&history.seen);
        if broken.len() > 8 {
            break;
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    println!("{seen:?}");
    // Histories in which nothing happens prove nothing.
    let counts = [
        seen.total.fired,
        seen.total.rescheduled,
        seen.total.claimed,
        seen.total.failed,
        seen.total.dead,
        seen.total.held,
        seen.total.deferred,
        seen.settled.fired,
        seen.settled.rescheduled,
        seen.settled.failed,
        seen.crashes,
        seen.turns_lost,
        seen.traps,
        seen.restored,
        seen.thrown,
        seen.cancelled,
    ];
    assert!(counts.iter().all(|count| *count > 20), "{seen:?}");
}

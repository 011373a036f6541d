//! Goal: no order of ticks, verbs, crashes, faults, late commits and clock steps breaks a promise.
//! Method: random histories of two drivers and a client over one store, stepped between any two of
//! their store calls and checked at every commit; behind each, what is left is worked off by the
//! stored wakes alone. A failure names its seed.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong here has found something"
)]

mod model;

use dueline::timers::Counts;
use model::history::History;
use model::seeds;

fn run(seeds: impl IntoIterator<Item = u64>) -> Counts {
    let mut seen = Counts::default();
    let mut broken = Vec::new();
    for seed in seeds {
        let mut history = History::new(seed);
        broken.extend(history.run());
        seen.add(&history.seen);
        if broken.len() > 8 {
            break;
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    seen
}

#[test]
fn no_random_history_breaks_a_promise() {
    let seen = run(seeds(0..200));
    // A history in which nothing happens proves nothing.
    let each = [
        seen.fired,
        seen.rescheduled,
        seen.claimed,
        seen.failed,
        seen.dead,
        seen.raced,
        seen.unknown_outcome,
        seen.held,
        seen.deferred,
    ];
    assert!(each.iter().all(|count| *count > 20), "{seen:?}");
}

//! Goal: no order of ticks, verbs, crashes, faults, late commits and clock steps breaks a promise.
//! Method: random histories of two drivers and a client over one store, stepped between any two of
//! their store calls and checked at every commit; behind each, what is left is worked off by the
//! stored wakes alone. A failure names its seed.

mod model;

use model::history::History;

fn run(seeds: impl IntoIterator<Item = u64>) {
    let broken: Vec<String> = seeds
        .into_iter()
        .flat_map(|seed| History::new(seed).run())
        .take(10)
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// How many histories to run, and from which seed: a hunt sets both.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    };
    let first = number("DUELINE_FIRST_SEED", 0);
    first..first + number("DUELINE_HISTORIES", 300)
}

#[test]
fn no_random_history_breaks_a_promise() {
    run(seeds());
}

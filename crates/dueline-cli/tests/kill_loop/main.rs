//! Goal: kills at random moments, the start-up included, break no promise to the clients of a server.
//! Method: the real binary on a directory of its own, eight clients that record what they ask for and
//! what they are told, a receiver that records what it gets, 20 kills a directory; then all is let come
//! to rest, and the checker reads the history.
//!
//! `DUELINE_KILLS` and `DUELINE_FIRST_SEED` ask for more: `cargo xtask crash --kills N --first-seed S`.
//! What is decided follows from the seed; when it happens does not.
#![cfg(test)]

mod client;
mod plan;
mod rest;
mod round;
#[path = "../support/mod.rs"]
mod support;

use dueline_history::Figures;

use plan::KILLS_PER_ROUND;

fn number(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a whole number"),
        Err(_) => usual,
    }
}

#[test]
fn kills_at_random_moments_break_no_promise() {
    let kills = number("DUELINE_KILLS", KILLS_PER_ROUND);
    let first_seed = number("DUELINE_FIRST_SEED", 1);
    let rounds = kills.div_ceil(KILLS_PER_ROUND);
    let mut total = Figures::default();
    for seed in first_seed..first_seed + rounds {
        let left = kills - total.kills;
        let figures = round::play(seed, left.min(KILLS_PER_ROUND));
        println!("seed {seed}: {figures:?}");
        total = total.plus(figures);
    }
    println!("all {rounds} directories: {total:?}");
    assert_eq!(total.kills, kills);
}

//! Goal: no interleaving of openings, ends, ticks, crashes, unknown outcomes and clocks opens a ticket over a
//! limit, ends one twice, or loses one. Method: random histories over the store in memory, stepped between
//! its calls; the rules are checked after every commit.
#![cfg(test)]

use dueline_kindsuite::ticket_expiry::model;

/// Runs in a few seconds; `DUELINE_SEEDS` runs more.
const SEEDS: u64 = 300;

#[test]
fn random_histories_keep_the_rules() {
    let seeds = std::env::var("DUELINE_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let mut seen = model::Seen::default();
    for seed in 0..seeds {
        seen.add(model::run(seed));
        assert!(seen.broken.is_empty(), "{:#?}", seen.broken);
    }
    // The histories come to everything that they are about.
    for end in ["consumed", "released", "cancelled", "expired"] {
        let count = seen.ends.get(end).copied().unwrap_or(0);
        assert!(count > seeds / 2, "{end}: {count} in {seeds} histories");
    }
    assert!(
        seen.aborted > seeds / 2 && seen.set_aside > seeds / 2,
        "{seen:?}"
    );
    println!("{seeds} histories: {seen:?}");
}

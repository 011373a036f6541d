//! Goal: no interleaving, fault, crash or clock step breaks an outbox or a relay. Method: random histories
//! over the memory store, each of them its seed, held to rules after every commit.
#![cfg(test)]

use dueline_kindsuite::outcome_delivery::model::History;

const SEEDS: u64 = 400;

#[test]
fn random_histories_break_no_rule() {
    let (mut outcomes, mut calls, mut absorbed) = (0, 0, 0);
    for seed in 0..SEEDS {
        let (broken, seen) = History::new(seed).run();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        (outcomes, calls, absorbed) = (outcomes + seen.0, calls + seen.1, absorbed + seen.2);
    }
    println!("{outcomes} outcomes, {calls} calls, {absorbed} messages absorbed");
    assert!(outcomes > 2_000 && calls > 2_000 && absorbed > 2_000);
}

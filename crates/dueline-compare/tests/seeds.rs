//! Random scripts on both engines: nothing differs but what is meant.
//!
//! Goal: the promise of the comparison, over a few hundred seeds in every run of the checks; many more
//! are hunted with `dueline-compare` built for release. Method: fixed seeds, so that a failure is the same
//! everywhere; the counts make sure that the scripts did what they are for.
#![cfg(test)]

use dueline_compare::{Difference, Scenario, Totals, run_scenario};

fn totals(seeds: std::ops::Range<u64>) -> Totals {
    let mut totals = Totals::default();
    for seed in seeds {
        match run_scenario(&Scenario::of_seed(seed)) {
            Ok(one) => totals.add(&one),
            Err(failure) => panic!("{failure}"),
        }
    }
    totals
}

#[test]
fn three_hundred_scripts_differ_only_as_is_meant() {
    let totals = totals(0..300);
    assert_eq!(totals.scenarios, 300);
    assert!(totals.ticks > 3_000, "{totals:?}");
    assert!(totals.fires_on_both > 5_000, "{totals:?}");
    assert!(totals.ticks_alike * 4 > totals.ticks, "{totals:?}");
    for difference in Difference::ALL {
        let met = totals.found.contains_key(&difference);
        assert_eq!(
            met,
            difference.is_met_by_scripts(),
            "{difference}; {totals:?}"
        );
    }
}

/// Seeds that once failed. 1,005,670: a kind that had used its share of a small budget went on behind a
/// later due of another kind, which the order of commits did not allow for.
#[test]
fn seeds_that_once_failed_pass() {
    totals(1_005_670..1_005_671);
}

#[test]
fn a_seed_is_the_same_script_every_time() {
    assert_eq!(totals(40..60), totals(40..60));
}

#[test]
fn a_shorter_run_of_a_seed_is_the_beginning_of_the_longer() {
    let long = Scenario::of_seed(7);
    let short = Scenario {
        ticks: long.ticks - 1,
        ..long.clone()
    };
    let (long, short) = (run_scenario(&long).unwrap(), run_scenario(&short).unwrap());
    assert_eq!(long.ticks, short.ticks + 1);
    assert!(long.runs >= short.runs && long.fires >= short.fires);
}

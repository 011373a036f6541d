//! The simulator in its shortest form, and that a seed is one run: the long forms are commands.
#![cfg(test)]

use dueline_history::{first_difference, trace_hash};
use dueline_sim::{KINDS_FROM, OBJECTS, Plan, judge, shrink};

#[test]
fn no_seed_breaks_a_promise() {
    for seed in (500_000..500_060)
        .chain(OBJECTS..OBJECTS + 40)
        .chain(KINDS_FROM..KINDS_FROM + 60)
    {
        let verdict = judge(&Plan::of(seed));
        assert!(verdict.broken.is_empty(), "seed {seed}: {verdict:?}");
        assert!(verdict.events.len() > 20, "seed {seed} does nothing");
    }
}

#[test]
fn a_seed_is_one_run() {
    for seed in (0..20)
        .chain(OBJECTS..OBJECTS + 10)
        .chain(KINDS_FROM..KINDS_FROM + 18)
    {
        let (one, other) = (judge(&Plan::of(seed)), judge(&Plan::of(seed)));
        assert_eq!(first_difference(&one.events, &other.events), None);
        assert_eq!(trace_hash(&one.events), trace_hash(&other.events));
    }
    let (one, other) = (judge(&Plan::of(1)), judge(&Plan::of(2)));
    assert_ne!(trace_hash(&one.events), trace_hash(&other.events));
}

#[test]
fn a_plan_that_breaks_nothing_is_not_cut() {
    let plan = Plan::of(3);
    let (cut, runs) = shrink(&plan);
    assert_eq!((cut.actions.len(), runs), (plan.actions.len(), 1));
}

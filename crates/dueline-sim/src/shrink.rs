//! Cuts a plan that breaks a promise down to what it needs.

use crate::plan::{Action, Plan};
use crate::verdict::judge;

/// The plan without actions that are not needed to break a promise, and how many runs that took. A
/// plan that breaks none comes back as it is.
pub fn shrink(plan: &Plan) -> (Plan, u32) {
    let mut runs = 0;
    let mut breaks = |plan: &Plan| {
        runs += 1;
        !judge(plan).broken.is_empty()
    };
    let mut best = plan.clone();
    if !breaks(&best) {
        return (best, runs);
    }
    let mut chunk = best.actions.len().div_ceil(2);
    while chunk > 0 {
        let mut from = 0;
        let mut cut = false;
        while from < best.actions.len() {
            let kept: Vec<Action> = best
                .actions
                .iter()
                .enumerate()
                .filter(|(place, _)| !(from..from + chunk).contains(place))
                .map(|(_, action)| action.clone())
                .collect();
            let candidate = Plan {
                actions: kept,
                ..best.clone()
            };
            if breaks(&candidate) {
                best = candidate;
                cut = true;
            } else {
                from += chunk;
            }
        }
        if !cut || chunk > best.actions.len() {
            chunk /= 2;
        }
    }
    let mut calm = best.clone();
    calm.world.faults = crate::disk::StoreFaults::default();
    if breaks(&calm) {
        best = calm;
    }
    (best, runs)
}

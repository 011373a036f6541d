//! Cuts a plan that breaks a promise down to what it needs.

use crate::disk::StoreFaults;
use crate::object::ObjectSpec;
use crate::plan::{Action, Plan, WorldSpec};
use crate::verdict::judge;

/// What a world may do without, one after the other: all faults of a platform, then each of them.
const CALMED: &[fn(&mut WorldSpec)] = &[
    |world| world.faults = StoreFaults::default(),
    |world| world.object = world.object.map(ObjectSpec::calm),
    |world| in_object(world, |it| it.per_mille = 0),
    |world| in_object(world, |it| it.alarm_percent = 0),
    |world| in_object(world, |it| it.storms = false),
    |world| in_object(world, |it| it.late_percent = 0),
    |world| in_object(world, |it| it.early_ms_max = 0),
    |world| in_object(world, |it| it.sync_us_max = 0),
    |world| in_object(world, |it| it.panics_trap = false),
];

fn in_object(world: &mut WorldSpec, change: fn(&mut ObjectSpec)) {
    if let Some(object) = &mut world.object {
        change(object);
    }
}

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
    for calmed in CALMED {
        let mut calm = best.clone();
        calmed(&mut calm.world);
        if breaks(&calm) {
            best = calm;
        }
    }
    (best, runs)
}

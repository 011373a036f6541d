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
    |world| in_object(world, |it| it.sync_percent = 0),
    |world| in_object(world, |it| it.storms = false),
    |world| in_object(world, |it| it.late_percent = 0),
    |world| in_object(world, |it| it.early_ms_max = 0),
    |world| in_object(world, |it| it.sync_us_max = 0),
    |world| in_object(world, |it| it.panics_trap = false),
    |world| in_object(world, |it| it.forgets = false),
];

fn in_object(world: &mut WorldSpec, change: fn(&mut ObjectSpec)) {
    if let Some(object) = &mut world.object {
        change(object);
    }
}

/// The plan without actions that are not needed to break a promise, and how many runs that took. A
/// plan that breaks none comes back as it is.
pub fn shrink(plan: &Plan) -> (Plan, u32) {
    shrink_by(plan, |plan| !judge(plan).broken.is_empty())
}

fn shrink_by(plan: &Plan, is_broken: impl Fn(&Plan) -> bool) -> (Plan, u32) {
    let mut runs = 0;
    let mut breaks = |plan: &Plan| {
        runs += 1;
        is_broken(plan)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Deed, OBJECTS};

    /// A plan of an object on a platform on which everything goes wrong.
    fn stormy() -> Plan {
        let mut plan = (OBJECTS..)
            .map(Plan::of)
            .find(|plan| plan.actions.len() > 30);
        let object = plan.as_mut().and_then(|plan| plan.world.object.as_mut());
        *object.expect("an object") = ObjectSpec {
            sync_us_max: 1,
            early_ms_max: 1,
            late_percent: 10,
            says_when: true,
            tells_of_traps: true,
            panics_trap: true,
            forgets: true,
            per_mille: 5,
            alarm_percent: 5,
            sync_percent: 5,
            storms: true,
            retry_first_ms: 20,
            ticks_max: 64,
            drain_ticks_max: 16,
        };
        plan.expect("a plan")
    }

    fn object_of(plan: &Plan) -> ObjectSpec {
        plan.world.object.expect("an object")
    }

    #[test]
    fn a_plan_is_left_with_the_actions_and_the_faults_that_it_needs() {
        let needs = |plan: &Plan| {
            let verbs = plan.actions.iter();
            let verbs = verbs.filter(|it| matches!(it.deed, Deed::Verb { .. }));
            verbs.count() >= 2 && object_of(plan).alarm_percent > 0
        };
        let (cut, _) = shrink_by(&stormy(), needs);
        assert_eq!(cut.actions.len(), 2);
        let left = object_of(&cut);
        assert_eq!((left.alarm_percent, left.per_mille), (5, 0));
        assert_eq!((left.late_percent, left.early_ms_max), (0, 0));
        assert_eq!((left.sync_us_max, left.storms), (0, false));
        assert!(!left.panics_trap && !left.forgets);
    }

    #[test]
    fn a_plan_that_needs_no_fault_is_left_without_any() {
        let (cut, _) = shrink_by(&stormy(), |_| true);
        assert!(cut.actions.is_empty());
        assert!(!object_of(&cut).has_faults());
        assert_eq!(object_of(&cut).sync_us_max, 0);
    }
}

//! Operations and crashes against the model.

mod driver;
mod handler;
mod record;
mod verbs;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use dueline::store::WakeStore;
use dueline_testkit::model::ActorStore;

use crate::script::Script;
use world::World;

/// What stands between a driver's engine and its store. One that passes on something else than it was given
/// makes the engine look wrong.
pub type Disguise = fn(Arc<ActorStore>) -> Arc<dyn WakeStore>;

const STEPS_MAX: usize = 600;

/// A history of two drivers and a client over one store, with crashes, faults and clocks that differ:
/// every byte decides something. The ledger holds every commit to the rules; in the end everything is
/// worked off by the stored wakes alone, and nothing may be left.
///
/// # Panics
/// If a rule is broken, with all that are.
pub fn operations(data: &[u8]) {
    let _reached = operations_disguised(data, |store| store);
}

/// [`operations`], with engines that are made to look wrong. Returns what was reached: how each verb
/// ended, what ticks and settles reported, and the mishaps that were planned.
///
/// # Panics
/// As [`operations`].
pub fn operations_disguised(data: &[u8], disguise: Disguise) -> BTreeSet<String> {
    let mut script = Script::new(data);
    let mut world = World::new(&mut script, disguise);
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        world.step(&mut script);
    }
    world.come_to_rest(script.next().is_multiple_of(2));
    let broken = world.broken();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    world.reached()
}

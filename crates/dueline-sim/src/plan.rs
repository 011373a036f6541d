//! What a seed says: the shape of the world and everything that will be done to it, as data that can
//! be cut down.

use dueline::timers::{Policy, RetryPolicy, TickBudget, TimerKind};
use dueline_testkit::model::Random;

use crate::disk::StoreFaults;
use crate::draw::{Swarm, troubles, verbs, world};
use crate::focus;
use crate::kinds;
use crate::object::{self, Mishap, ObjectSpec};

/// The kind whose timers recur at a fixed distance.
pub const RECURRING: TimerKind = TimerKind(20);
/// A kind that no node knows.
pub const STRANGE: TimerKind = TimerKind(99);

/// Seeds from here on play one object with one alarm, in place of nodes that share a store.
pub const OBJECTS: u64 = 1 << 60;

/// Seeds from here on play a scenario of a built-in kind, on nodes that share a store.
pub const KINDS_FROM: u64 = 1 << 61;

/// A whole run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// The world it happens in.
    pub world: WorldSpec,
    /// What happens, in the order of its times.
    pub actions: Vec<Action>,
}

/// The world of a run.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// One for each node.
    pub nodes: Vec<NodeSpec>,
    /// Whether the store is another machine, and nodes ask it for what others have written.
    pub is_remote: bool,
    /// Partitions that clients use.
    pub partitions: u64,
    /// How far the store's clock is off, in milliseconds.
    pub store_offset_ms: i64,
    /// How the store goes wrong before everything is healed.
    pub faults: StoreFaults,
    /// When that is, in microseconds from the beginning.
    pub heal_at_us: u64,
    /// How kinds retry.
    pub retry: RetryPolicy,
    /// One object with one alarm, in place of nodes that share a store.
    pub object: Option<ObjectSpec>,
    /// The scenario of a built-in kind, in place of scripted kinds: its number.
    pub scenario: Option<usize>,
    /// Bits of the clock left in a generation, if fewer than all.
    pub narrow_generations: bool,
    /// Whether nothing but a failed call or settle lets a call go out again.
    pub calls_once: bool,
}

/// One node.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// How far its clock is off, in milliseconds.
    pub offset_ms: i64,
    /// How much it gains, in millionths.
    pub drift_ppm: i64,
    /// Whether its first program lacks half of the kinds.
    pub is_old: bool,
    /// What a tick may do.
    pub budget: TickBudget,
    /// Timers of one commit.
    pub group_max: u16,
    /// Calls of the detached kind at a time.
    pub concurrency: u32,
    /// Partitions ticked at a time.
    pub ticks_max: usize,
    /// Most runs of the first kind in a tick.
    pub per_tick_max: Option<u32>,
}

/// Something that is done.
#[derive(Clone, Debug)]
pub struct Action {
    /// When, in microseconds from the beginning.
    pub at_us: u64,
    /// How many steps of tasks come before it at that time.
    pub after_steps: u64,
    /// What.
    pub deed: Deed,
}

/// What is done.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A client asks for something, through this node or another that lives.
    Verb {
        /// The node.
        node: u64,
        /// What.
        verb: VerbSpec,
        /// How often it is asked again after an unknown outcome.
        retries: u32,
    },
    /// A client of the scenario asks for something, through this node or another that lives.
    Ask {
        /// The node.
        node: u64,
        /// What is drawn from to say what.
        draw: u64,
    },
    /// A lane of the scenario is paused, through this node or another that lives, and resumed after a while.
    PauseLane {
        /// The node.
        node: u64,
        /// Which lane.
        lane: u64,
        /// For how long.
        for_us: u64,
    },
    /// A process dies, and another begins after a while.
    Crash {
        /// The node.
        node: u64,
        /// How long it is down.
        down_us: u64,
    },
    /// A process ends as it should, and another begins after a while.
    Stop {
        /// The node.
        node: u64,
        /// How long what runs may take.
        grace_ms: u64,
        /// How long it is down.
        down_us: u64,
    },
    /// A process stands still for a while, as a suspended machine does.
    Suspend {
        /// The node.
        node: u64,
        /// For how long.
        for_us: u64,
    },
    /// A wall clock is set.
    Jump {
        /// The node, or one number more for the store.
        node: u64,
        /// By how much.
        by_ms: i64,
    },
    /// A wall clock stands still for a while.
    Freeze {
        /// The node, or one number more for the store.
        node: u64,
        /// For how long.
        for_us: u64,
    },
    /// The driver is told to look although nothing is there.
    Nudge {
        /// The node.
        node: u64,
    },
    /// A commit that is late is done.
    LandLate,
    /// The store has room for nothing but the engine's moves from now on, or for everything again.
    Full {
        /// Whether it is full.
        is_full: bool,
    },
    /// Something befalls the object.
    Befall(Mishap),
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct VerbSpec {
    /// The partition's number.
    pub partition: u64,
    /// The kind.
    pub kind: TimerKind,
    /// The reference.
    pub reference: String,
    /// What is asked for.
    pub what: VerbWhat,
}

/// The verbs.
#[derive(Clone, Debug)]
pub enum VerbWhat {
    /// Schedules a timer, due at this distance from the client's now.
    Schedule {
        /// The distance.
        due_in_ms: i64,
        /// What becomes of one that is there.
        policy: Policy,
        /// Whether the reference is a name.
        named: bool,
        /// What the handler is to do.
        payload: bytes::Bytes,
    },
    /// Removes a named timer.
    Cancel,
    /// Gives a named timer another due.
    Reschedule {
        /// The distance from the client's now.
        due_in_ms: i64,
    },
    /// Gives a named timer another payload.
    Change {
        /// The payload.
        payload: bytes::Bytes,
    },
    /// Makes a named timer due now.
    FireNow,
    /// Reads a named timer.
    Get,
    /// Pauses the lane.
    Pause,
    /// Ends the pause of the lane.
    Resume,
    /// Brings the first dead timer back.
    Requeue,
    /// Removes the first dead timer.
    Purge,
    /// Schedules these timers in one request; named ones, due at these distances.
    Many {
        /// Reference and distance of each.
        timers: Vec<(String, i64)>,
        /// What the handlers are to do.
        payload: bytes::Bytes,
    },
    /// Asks for a change of a named timer if it is a generation that it is not: 0 cancels, 1 gives it
    /// another due, 2 replaces it.
    Stale {
        /// Which change.
        change: u8,
    },
    /// Writes a row of class `w` whose key does not parse.
    Malformed {
        /// The due in its bytes, as a distance from the client's now.
        due_in_ms: i64,
    },
    /// Writes a timer row whose header does not decode.
    Headless {
        /// The due, as a distance from the client's now.
        due_in_ms: i64,
    },
}

impl Plan {
    /// Through how many bits generations count, if not through all: only builds with planted bugs can
    /// narrow them.
    pub fn generation_bits(&self) -> Option<u32> {
        self.world.narrow_generations.then_some(3)
    }

    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let swarm = Swarm::of(&mut random);
        let world = world(&mut random, swarm);
        let mut actions = verbs(&mut random, swarm, &world);
        actions.extend(troubles(&mut random, swarm, &world));
        let mut plan = Self {
            seed,
            world,
            actions,
        };
        focus::add(&mut plan, &mut random);
        plan.actions.sort_by_key(|action| action.at_us);
        if seed >= KINDS_FROM {
            kinds::move_into(&mut plan);
        } else if seed >= OBJECTS {
            object::move_into(&mut plan);
        }
        plan
    }

    /// Whether all clocks agree all the time and every process goes on.
    pub fn has_true_clocks(&self) -> bool {
        let is_true = |node: &NodeSpec| node.offset_ms == 0 && node.drift_ppm == 0;
        let is_trouble = |action: &Action| {
            matches!(
                action.deed,
                Deed::Jump { .. } | Deed::Freeze { .. } | Deed::Suspend { .. }
            )
        };
        let world = &self.world;
        world.store_offset_ms == 0
            && world.nodes.iter().all(is_true)
            && !self.actions.iter().any(is_trouble)
    }
}

//! What a seed says: the shape of the world and everything that will be done to it, as data that can
//! be cut down.

use dueline::timers::{Policy, RetryPolicy, TickBudget, TimerKind};
use dueline_testkit::model::Random;
use dueline_testkit::model::script::{KINDS, OPS, Op, REFERENCES, payload};

use crate::disk::StoreFaults;
use crate::object::{self, Mishap, ObjectSpec};

/// The kind whose timers recur at a fixed distance.
pub const RECURRING: TimerKind = TimerKind(20);
/// A kind that no node knows.
pub const STRANGE: TimerKind = TimerKind(99);

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
    /// Bits of the clock left in a generation, if fewer than all.
    pub narrow_generations: bool,
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

/// What a seed draws at all: swarm bits, so that rare things are not always drowned by common ones.
#[derive(Clone, Copy, Debug)]
struct Swarm {
    crashes: bool,
    clocks: bool,
    suspends: bool,
    pauses: bool,
    changes: bool,
    malformed: bool,
    dead: bool,
    strange: bool,
    bursts: bool,
    few_names: bool,
    one_lane: bool,
    failing: bool,
    recurring: bool,
    moves_into_past: bool,
    hangs: bool,
}

impl Swarm {
    fn of(random: &mut Random) -> Self {
        let mut bit = |percent| random.chance(percent);
        Self {
            crashes: bit(50),
            clocks: bit(35),
            suspends: bit(25),
            pauses: bit(40),
            changes: bit(50),
            malformed: bit(25),
            dead: bit(40),
            strange: bit(25),
            bursts: bit(35),
            few_names: bit(50),
            one_lane: bit(25),
            failing: bit(60),
            recurring: bit(30),
            moves_into_past: bit(40),
            hangs: bit(20),
        }
    }
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
        actions.sort_by_key(|action| action.at_us);
        let mut plan = Self {
            seed,
            world,
            actions,
        };
        if seed % 4 == 3 {
            object::move_into(&mut plan);
        }
        plan
    }
}

fn world(random: &mut Random, swarm: Swarm) -> WorldSpec {
    let is_remote = random.chance(50);
    let nodes = if is_remote { 1 + random.below(3) } else { 1 };
    let skews: &[i64] = if swarm.clocks {
        &[0, 400, -400, 4_000, -4_000, 60_000, -60_000]
    } else {
        &[0]
    };
    let faults = if random.chance(70) {
        StoreFaults::of(random, is_remote)
    } else {
        StoreFaults::default()
    };
    WorldSpec {
        nodes: (0..nodes).map(|_| node(random, swarm, skews)).collect(),
        is_remote,
        partitions: random.pick(&[1, 1, 2, 3, 8]),
        store_offset_ms: random.pick(skews),
        faults,
        heal_at_us: 1_000_000 * random.pick(&[3, 6, 12, 25]),
        retry: RetryPolicy {
            attempts_max: random.pick(&[Some(1), Some(3), Some(5)]),
            initial_ms: random.pick(&[50, 400, 1_000]),
            max_ms: random.pick(&[1_000, 3_000]),
            jitter_percent: random.pick(&[0, 20, 100]),
        },
        object: None,
        narrow_generations: random.chance(30),
    }
}

fn node(random: &mut Random, swarm: Swarm, skews: &[i64]) -> NodeSpec {
    let few = |random: &mut Random| random.pick(&[1, 2, 3, 8, 10_000, 10_000, 10_000]);
    NodeSpec {
        offset_ms: random.pick(skews),
        drift_ppm: if swarm.clocks {
            random.pick(&[0, 500, -500])
        } else {
            0
        },
        is_old: swarm.strange && random.chance(40),
        budget: TickBudget {
            max_fired: few(random),
            max_per_kind: few(random),
            max_scanned: few(random),
            max_elapsed_ms: random.pick(&[1, 500, 30_000, 30_000]),
        },
        group_max: random.pick(&[1, 2, 8, 64]),
        concurrency: random.pick(&[1, 2, 8]),
        ticks_max: random.pick(&[1, 2, 256]),
        per_tick_max: random.chance(20).then_some(1),
    }
}

fn verbs(random: &mut Random, swarm: Swarm, world: &WorldSpec) -> Vec<Action> {
    let mut actions = Vec::new();
    let count = random.pick(&[6, 12, 25, 50]);
    let mut at_us = 0;
    while actions.len() < count {
        at_us = if random.chance(40) {
            at_us
        } else {
            random.below(world.heal_at_us)
        };
        let verb = verb(random, swarm, world);
        let burst = if swarm.bursts && random.chance(10) {
            random.pick(&[5, 20])
        } else {
            1
        };
        for number in 0..burst {
            let mut verb = verb.clone();
            if burst > 1 {
                verb.reference = format!("burst-{}-{number}", actions.len());
            }
            actions.push(Action {
                at_us,
                after_steps: random.below(20),
                deed: Deed::Verb {
                    node: random.below(world.nodes.len() as u64),
                    verb,
                    retries: u32::try_from(random.below(3)).unwrap_or(0),
                },
            });
        }
    }
    actions
}

fn due_in_ms(random: &mut Random) -> i64 {
    let below = |random: &mut Random, end| i64::try_from(random.below(end)).unwrap_or(0);
    match random.below(8) {
        0 | 1 => -1 - below(random, 5_000),
        2 => 0,
        3 => 1,
        4 => 500,
        5 | 6 => below(random, 4_000),
        _ => below(random, 30_000),
    }
}

fn script(random: &mut Random, swarm: Swarm) -> bytes::Bytes {
    let calm = [Op::Done, Op::Log, Op::Count, Op::Tally];
    let op = match random.below(10) {
        0..4 => random.pick(&calm),
        4..6 if swarm.moves_into_past => random.pick(&[Op::Reschedule, Op::Put, Op::Replace]),
        6 if swarm.failing => random.pick(&[Op::Fail, Op::Panic, Op::RetryAfter]),
        7 if swarm.hangs => Op::Hang,
        _ => {
            let op = random.pick(&OPS);
            let is_rare = matches!(op, Op::Hang | Op::Recur);
            let fails = matches!(op, Op::Fail | Op::Panic | Op::TooMuch | Op::LostGuard);
            if is_rare || (fails && !swarm.failing) {
                Op::Log
            } else {
                op
            }
        }
    };
    let times = u8::try_from(random.below(4)).unwrap_or(0);
    payload(op, times, random.pick(&KINDS), random.pick(&REFERENCES))
}

fn verb(random: &mut Random, swarm: Swarm, world: &WorldSpec) -> VerbSpec {
    let mut kind = if swarm.one_lane {
        random.pick(&[KINDS[0], KINDS[3]])
    } else {
        random.pick(&KINDS)
    };
    let named = random.chance(65);
    let names: &[&str] = if swarm.few_names {
        &REFERENCES[..2]
    } else {
        &REFERENCES
    };
    let reference = random.pick(names).to_owned();
    let policy = random.pick(&[
        Policy::Replace,
        Policy::KeepEarliest,
        Policy::KeepEarliest,
        Policy::IfAbsent,
    ]);
    let schedule = |random: &mut Random, payload| VerbWhat::Schedule {
        due_in_ms: due_in_ms(random),
        policy,
        named,
        payload,
    };
    let what = match random.below(24) {
        0 | 1 => VerbWhat::Cancel,
        2 if swarm.changes => VerbWhat::Reschedule {
            due_in_ms: due_in_ms(random),
        },
        3 if swarm.changes => VerbWhat::Change {
            payload: script(random, swarm),
        },
        4 if swarm.changes => VerbWhat::FireNow,
        5 => VerbWhat::Get,
        6 if swarm.pauses => VerbWhat::Pause,
        7 | 8 if swarm.pauses => VerbWhat::Resume,
        9 if swarm.dead => VerbWhat::Requeue,
        10 if swarm.dead => VerbWhat::Purge,
        11 if swarm.malformed => VerbWhat::Malformed {
            due_in_ms: due_in_ms(random),
        },
        12 if swarm.malformed => VerbWhat::Headless {
            due_in_ms: due_in_ms(random),
        },
        13 if swarm.strange => {
            kind = STRANGE;
            schedule(random, bytes::Bytes::new())
        }
        14 | 15 if swarm.recurring => {
            kind = RECURRING;
            let times = u8::try_from(1 + random.below(4)).unwrap_or(1);
            let recur = payload(Op::Recur, times, RECURRING, "recur");
            schedule(random, recur)
        }
        _ => {
            let payload = script(random, swarm);
            schedule(random, payload)
        }
    };
    VerbSpec {
        partition: random.below(world.partitions),
        kind,
        reference,
        what,
    }
}

fn troubles(random: &mut Random, swarm: Swarm, world: &WorldSpec) -> Vec<Action> {
    let mut actions = Vec::new();
    let nodes = world.nodes.len() as u64;
    let count = random.below(12);
    for _ in 0..count {
        let node = random.below(nodes);
        let down_us = random.pick(&[0, 1_000, 700_000, 5_000_000, 15_000_000]);
        let deed = match random.below(10) {
            0..3 if swarm.crashes => Deed::Crash { node, down_us },
            3 if swarm.crashes => Deed::Stop {
                node,
                grace_ms: random.pick(&[0, 100, 10_000]),
                down_us,
            },
            4 if swarm.suspends => Deed::Suspend {
                node,
                for_us: random.pick(&[1_000, 800_000, 9_000_000, 600_000_000]),
            },
            5 | 6 if swarm.clocks => Deed::Jump {
                node: random.below(nodes + 1),
                by_ms: random.pick(&[
                    -3_600_000,
                    -5_000,
                    -300,
                    -1,
                    1,
                    300,
                    20_000,
                    86_400_000,
                    31_536_000_000,
                ]),
            },
            7 if swarm.clocks => Deed::Freeze {
                node: random.below(nodes + 1),
                for_us: random.pick(&[500_000, 8_000_000]),
            },
            8 => Deed::LandLate,
            _ => Deed::Nudge { node },
        };
        actions.push(Action {
            at_us: random.below(world.heal_at_us),
            after_steps: random.below(120),
            deed,
        });
    }
    actions
}

//! What a seed draws: a world, what clients ask for, and the troubles of nodes and clocks.

use dueline::timers::{Policy, RetryPolicy, TickBudget};
use dueline_testkit::model::Random;
use dueline_testkit::model::script::{KINDS, OPS, Op, REFERENCES, payload};

use crate::disk::StoreFaults;
use crate::plan::{Action, Deed, NodeSpec, RECURRING, STRANGE, VerbSpec, VerbWhat, WorldSpec};

/// What a seed draws at all: swarm bits, so that rare things are not always drowned by common ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swarm {
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
    pub(crate) fn of(random: &mut Random) -> Self {
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

pub(crate) fn world(random: &mut Random, swarm: Swarm) -> WorldSpec {
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
        scenario: None,
        narrow_generations: random.chance(30),
        calls_once: false,
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

pub(crate) fn verbs(random: &mut Random, swarm: Swarm, world: &WorldSpec) -> Vec<Action> {
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
            let op = random.pick(OPS.first_chunk::<20>().unwrap_or(&[Op::Done; 20]));
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

pub(crate) fn troubles(random: &mut Random, swarm: Swarm, world: &WorldSpec) -> Vec<Action> {
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

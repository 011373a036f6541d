//! What happens in a run: drawn from a seed, tick by tick, each tick by itself, so that a run cut short
//! is the same run.

use bytes::Bytes;

use crate::random::Random;
use crate::{Act, After, Id, Script};

/// The kinds that have a handler.
pub const KINDS: [u8; 3] = [16, 17, 18];
/// A kind that has none.
pub const UNKNOWN_KIND: u8 = 40;
/// The kind in the keys of malformed rows.
pub const MALFORMED_KIND: u8 = 17;
/// Rows a partition holds at most: fewer than a page of either engine, unless the scenario is big.
const ROWS_MAX: usize = 50;
const BIG_ROWS_MAX: usize = 180;
const START_MS: u64 = 1_700_000_000_000;

/// What one tick may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most fires.
    pub fired: u32,
    /// Most of a kind.
    pub per_kind: u32,
    /// Most rows read.
    pub scanned: u32,
    /// Most time, in milliseconds.
    pub elapsed_ms: u64,
}

impl Budget {
    /// More than any script needs.
    pub const AMPLE: Self = Self {
        fired: 1_000_000,
        per_kind: 1_000_000,
        scanned: 1_000_000,
        elapsed_ms: 1_000_000_000,
    };
}

/// A fault of the store at the commit of one timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written; the store says it is unavailable.
    Refused(Id),
    /// It is written, and the answer is lost.
    AnswerLost(Id),
}

impl Fault {
    /// Whose commit it is.
    pub fn id(&self) -> &Id {
        match self {
            Self::Refused(id) | Self::AnswerLost(id) => id,
        }
    }
}

/// The setting of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where everything is drawn from.
    pub seed: u64,
    /// How many ticks.
    pub ticks: u32,
    /// How many timers the script schedules a tick, at most.
    pub burst: u64,
    /// Our group size.
    pub group_max: u16,
    /// Whether we look at the lanes whose stored wakes are due, or at all.
    pub woken: bool,
    /// The caps of the kinds, by their handlers.
    pub caps: [Option<u32>; 3],
    /// The budget of each tick.
    pub budget: Budget,
    /// Whether guards, deadlines and rows are lost, and batches are refused.
    pub races: bool,
    /// Whether the store fails commits.
    pub faults: bool,
    /// Whether there are malformed rows and kinds without a handler.
    pub strangers: bool,
    /// Whether handlers take time.
    pub slow: bool,
    /// Whether there may be more rows than a page holds.
    pub big: bool,
    /// Whether the clock goes from due to due, for long: attempts add up.
    pub patient: bool,
}

/// What happens before and during one tick.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which tick.
    pub tick: u32,
    /// Its time, in milliseconds since 1970.
    pub now_ms: u64,
    /// Timers scheduled before it.
    pub scheduled: Vec<(Id, u64, Bytes)>,
    /// Malformed rows put before it, with the due in their key.
    pub malformed: Vec<(Bytes, u64)>,
    /// A fault of the store during it.
    pub fault: Option<Fault>,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let random = Random::of(&[seed, 0x5ce9]);
        let tight = random.one_in(4);
        let budget = if tight {
            Budget {
                fired: 1 + u32::try_from(random.below(12)).unwrap_or(0),
                per_kind: 1 + u32::try_from(random.below(8)).unwrap_or(0),
                scanned: 1 + u32::try_from(random.below(60)).unwrap_or(0),
                ..Budget::AMPLE
            }
        } else {
            Budget::AMPLE
        };
        let capped = random.one_in(3);
        let cap = || (capped && random.one_in(2)).then(|| 1 + random.below(4) as u32);
        let caps = [cap(), cap(), cap()];
        let faults = random.one_in(4);
        let big = random.one_in(8);
        let short = 4 + random.below(24) as u32;
        let patient = !big && random.one_in(10);
        Self {
            seed,
            ticks: if patient { 60 } else { short },
            burst: if big {
                60
            } else if patient {
                1
            } else {
                random.pick(&[1, 4, 4, 12]).unwrap_or(1)
            },
            group_max: if faults {
                1
            } else {
                random.pick(&[1, 2, 8, 64]).unwrap_or(1)
            },
            woken: random.one_in(2),
            caps,
            budget,
            races: random.one_in(2),
            faults,
            strangers: random.one_in(3),
            slow: random.one_in(4),
            big,
            patient,
        }
    }

    /// One in which nothing is drawn but handlers that do their work.
    pub fn plain(seed: u64) -> Self {
        Self {
            seed,
            ticks: 1,
            burst: 0,
            group_max: 1,
            woken: false,
            caps: [None; 3],
            budget: Budget::AMPLE,
            races: false,
            faults: false,
            strangers: false,
            slow: false,
            big: false,
            patient: false,
        }
    }

    /// Whether the budget can end a tick.
    pub fn is_tight(&self) -> bool {
        self.budget != Budget::AMPLE
    }

    /// Whether a tick may read several pages, there or here.
    pub fn is_paged(&self) -> bool {
        self.is_tight() || self.big
    }

    /// The cap of a kind by its handler.
    pub fn cap(&self, kind: u8) -> Option<u32> {
        let index = KINDS.iter().position(|known| *known == kind)?;
        self.caps.get(index).copied().flatten()
    }

    /// The step of a tick, which depends on the seed, the number, and what is there.
    pub fn step(&self, tick: u32, last_ms: u64, there: &After, script: &Script) -> Step {
        let random = Random::of(&[self.seed, 0x7e9, u64::from(tick)]);
        let now_ms = self.now(&random, tick, last_ms, there);
        let mut step = Step {
            tick,
            now_ms,
            scheduled: Vec::new(),
            malformed: Vec::new(),
            fault: None,
        };
        let wanted = random.below(self.burst + 1);
        let most = if self.big { BIG_ROWS_MAX } else { ROWS_MAX };
        let room = most.saturating_sub(there.rows.len() + there.malformed.len());
        for number in 0..wanted.min(room as u64) {
            let kind = if self.strangers && random.one_in(8) {
                UNKNOWN_KIND
            } else {
                random.pick(&KINDS).unwrap_or(KINDS[0])
            };
            // References out of the order of scheduling.
            let reference = format!("{:03}-{tick}-{number}", random.below(1_000));
            let due_ms = due(&random, now_ms, there);
            let payload = Bytes::from(vec![b'p'; random.below(12) as usize]);
            step.scheduled
                .push((Id::new(kind, reference), due_ms, payload));
        }
        if self.strangers && room > 0 && random.one_in(6) {
            let tag = Bytes::copy_from_slice(&tick.to_be_bytes()[1..]);
            step.malformed.push((tag, due(&random, now_ms, there)));
        }
        if self.faults && random.one_in(3) {
            step.fault = fault(&random, &step, there, script);
        }
        step
    }

    fn now(&self, random: &Random, tick: u32, last_ms: u64, there: &After) -> u64 {
        if tick == 0 {
            return START_MS;
        }
        let first_due_ms = there.rows.values().map(|row| row.due_ms).min();
        let choice = if self.patient { 7 } else { random.below(8) };
        match choice {
            0 => last_ms,
            1 => last_ms + 1,
            2 => last_ms + random.below(20_000),
            3 => last_ms + 600_000,
            4 => last_ms - random.below(10_000),
            _ => first_due_ms.unwrap_or(last_ms).max(last_ms),
        }
    }
}

fn due(random: &Random, now_ms: u64, there: &After) -> u64 {
    let another = there.rows.values().nth(random.below(8) as usize);
    match random.below(7) {
        0 => now_ms - random.below(60_000),
        1 => now_ms,
        2 => now_ms + 1,
        3 => now_ms + random.below(10_000),
        4 => now_ms - 1_000,
        5 => another.map_or(now_ms, |row| row.due_ms),
        _ => now_ms + 60_000,
    }
}

/// A fault at the commit of a due timer that commits effects.
fn fault(random: &Random, step: &Step, there: &After, script: &Script) -> Option<Fault> {
    let commits = |id: &Id| {
        let act = script.act(step.tick, id);
        KINDS.contains(&id.kind)
            && matches!(act, Act::Done | Act::Count | Act::Later(_) | Act::Spawn(_))
    };
    let due: Vec<&Id> = there
        .rows
        .iter()
        .filter(|(id, row)| row.due_ms <= step.now_ms && commits(id))
        .map(|(id, _)| id)
        .collect();
    let id = random.pick(&due)?.clone();
    Some(if random.one_in(2) {
        Fault::Refused(id)
    } else {
        Fault::AnswerLost(id)
    })
}

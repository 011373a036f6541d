//! What a seed says of an object and its platform.

use dueline::store::StoreErrorKind;
use dueline_testkit::model::Random;
use dueline_worker::simulated::{StorageCall, StorageFaults};

use crate::disk::StoreFaults;
use crate::plan::{Action, Deed, Plan};

/// The platform of an object, and how it goes wrong before everything is healed.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSpec {
    /// How long a turn may be on its way to durability, in microseconds.
    pub sync_us_max: u64,
    /// By how much alarms come before their time, at most, in milliseconds.
    pub early_ms_max: u64,
    /// How many of a hundred alarms come late.
    pub late_percent: u64,
    /// Whether the platform says for which time an alarm was set.
    pub says_when: bool,
    /// Whether a new instance is told that the one before it trapped.
    pub tells_of_traps: bool,
    /// Whether a handler that panics takes the instance down, as where nothing unwinds.
    pub panics_trap: bool,
    /// How many of a thousand reads and transactions fail.
    pub per_mille: u64,
    /// How many of a hundred calls for the alarm fail.
    pub alarm_percent: u64,
    /// Whether those fail in rows, so that an alarm is given up.
    pub storms: bool,
    /// The platform's wait before it tries a failed alarm again for the first time, in milliseconds.
    pub retry_first_ms: u64,
    /// How many of a hundred waits for durability end without a word of it.
    pub sync_percent: u64,
    /// Whether an instance that nobody uses is gone when the alarm comes.
    pub forgets: bool,
    /// How many rounds an alarm may go.
    pub ticks_max: u32,
    /// How many of them without a call under way.
    pub drain_ticks_max: u32,
}

/// What befalls an object beside what befalls every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Its instance traps between two turns.
    Trap,
    /// The platform loses its alarm.
    LoseAlarm,
    /// An alarm is delivered that the platform does not know of.
    AlarmAgain,
    /// A request runs what is due by itself.
    RunByHand,
}

impl ObjectSpec {
    fn of(random: &mut Random) -> Self {
        let mut rate = |percent, of: &[u64]| {
            if random.chance(percent) {
                random.pick(of)
            } else {
                0
            }
        };
        Self {
            sync_us_max: rate(80, &[1, 1_000, 20_000, 400_000]),
            early_ms_max: rate(25, &[1, 3]),
            late_percent: rate(40, &[10, 60]),
            per_mille: rate(35, &[5, 20, 100]),
            alarm_percent: rate(30, &[5, 50]),
            sync_percent: rate(30, &[10, 50]),
            storms: random.chance(50),
            // With the platform's own wait an alarm is given up only behind two minutes.
            retry_first_ms: random.pick(&[2_000, 2_000, 20]),
            says_when: random.chance(50),
            tells_of_traps: random.chance(60),
            panics_trap: random.chance(50),
            forgets: random.chance(30),
            ticks_max: random.pick(&[2, 64]),
            drain_ticks_max: random.pick(&[1, 2, 16]),
        }
    }

    /// Whether calls of the storage fail.
    pub fn has_faults(&self) -> bool {
        self.per_mille > 0 || self.alarm_percent > 0 || self.sync_percent > 0
    }

    /// The same platform without anything that goes wrong on it.
    pub(crate) fn calm(self) -> Self {
        Self {
            sync_us_max: 0,
            early_ms_max: 0,
            late_percent: 0,
            per_mille: 0,
            alarm_percent: 0,
            sync_percent: 0,
            ..self
        }
    }

    pub(super) fn faults(&self, seed: u64) -> StorageFaults {
        let mut random = Random::new(seed);
        let (per_mille, alarm_percent) = (self.per_mille, self.alarm_percent);
        let sync_percent = self.sync_percent;
        let (storms, mut left) = (self.storms, 0);
        StorageFaults::decided_by(move |call| match call {
            StorageCall::Read | StorageCall::Transaction => {
                if random.below(1_000) >= per_mille {
                    return None;
                }
                let is_full = call == StorageCall::Transaction && random.chance(30);
                Some(if is_full {
                    StoreErrorKind::Full
                } else {
                    StoreErrorKind::Unavailable
                })
            }
            StorageCall::GetAlarm | StorageCall::SetAlarm => {
                if left == 0 && random.chance(alarm_percent) {
                    left = 1 + if storms { random.below(40) } else { 0 };
                } else if left == 0 {
                    return None;
                }
                left -= 1;
                Some(StoreErrorKind::Unavailable)
            }
            StorageCall::Sync => random
                .chance(sync_percent)
                .then_some(StoreErrorKind::Unavailable),
            // The platform takes an alarm with the turn that set it, or loses both.
            StorageCall::ConfirmAlarm => None,
        })
    }
}

/// Plays a plan with one object in place of its nodes.
pub fn move_into(plan: &mut Plan) {
    let mut random = Random::new(plan.seed ^ 0x000b_1ec7_a1a2_3a11);
    let world = &mut plan.world;
    world.nodes.truncate(1);
    world.is_remote = false;
    world.faults = StoreFaults::default();
    world.object = Some(ObjectSpec::of(&mut random));
    let loses_alarms = random.chance(25);
    let again = random.chance(40);
    let traps = random.chance(30);
    let by_hand = random.chance(25);
    for action in &mut plan.actions {
        if let Deed::Verb { node, .. } | Deed::Crash { node, .. } | Deed::Jump { node, .. } =
            &mut action.deed
        {
            *node = 0;
        }
    }
    for _ in 0..random.below(9) {
        let mishap = match random.below(4) {
            0 if traps => Mishap::Trap,
            1 if loses_alarms => Mishap::LoseAlarm,
            2 if again => Mishap::AlarmAgain,
            3 if by_hand => Mishap::RunByHand,
            _ => continue,
        };
        plan.actions.push(Action {
            at_us: random.below(plan.world.heal_at_us),
            after_steps: random.below(12),
            deed: Deed::Befall(mishap),
        });
    }
    plan.actions.sort_by_key(|action| action.at_us);
}

//! What goes wrong in a history; all of it follows from the seed.

use dueline::store::StoreErrorKind;
use dueline_testkit::model::Random;
use dueline_worker::simulated::{StorageCall, StorageFaults};

#[derive(Clone, Debug)]
pub struct Weather {
    pub steps: u64,
    /// Crashes, and evictions: an instance is gone between any two steps, un-synced turns with it.
    pub crashes: bool,
    pub traps: bool,
    /// Whether a new instance is told of the trap before it.
    pub tells_of_traps: bool,
    pub clock_steps: bool,
    pub early: bool,
    pub late: bool,
    pub twice: bool,
    pub loses_alarms: bool,
    /// Whether the platform says for which time an alarm was set.
    pub says_when: bool,
    /// How many of a thousand calls of the storage fail.
    pub per_mille: u64,
    /// How many of a hundred calls for the alarm fail.
    pub alarm_percent: u64,
    /// Whether such failures come in rows, so that an alarm is given up.
    pub storms: bool,
}

impl Weather {
    pub fn of(random: &mut Random) -> Self {
        Self {
            steps: 80 + random.below(400),
            crashes: random.chance(50),
            traps: random.chance(40),
            tells_of_traps: random.chance(60),
            clock_steps: random.chance(25),
            early: random.chance(25),
            late: random.chance(40),
            twice: random.chance(30),
            loses_alarms: random.chance(15),
            says_when: random.chance(50),
            per_mille: if random.chance(30) {
                random.pick(&[5, 20, 100])
            } else {
                0
            },
            alarm_percent: if random.chance(25) {
                random.pick(&[5, 50])
            } else {
                0
            },
            storms: random.chance(50),
        }
    }

    pub fn has_storage_faults(&self) -> bool {
        self.per_mille > 0 || self.alarm_percent > 0
    }

    pub fn faults(&self, seed: u64) -> StorageFaults {
        let mut random = Random::new(seed);
        let (per_mille, alarm_percent) = (self.per_mille, self.alarm_percent);
        let (storms, mut left) = (self.storms, 0);
        StorageFaults::decided_by(move |call| match call {
            StorageCall::Read | StorageCall::Transaction => {
                if random.below(1_000) >= per_mille {
                    return None;
                }
                Some(if call == StorageCall::Transaction && random.chance(30) {
                    StoreErrorKind::Full
                } else {
                    StoreErrorKind::Unavailable
                })
            }
            StorageCall::GetAlarm | StorageCall::SetAlarm => {
                if left == 0 && random.chance(alarm_percent) {
                    left = if storms { random.below(60) } else { 0 } + 1;
                } else if left == 0 {
                    return None;
                }
                left -= 1;
                Some(StoreErrorKind::Unavailable)
            }
            StorageCall::ConfirmAlarm | StorageCall::Sync => None,
        })
    }
}

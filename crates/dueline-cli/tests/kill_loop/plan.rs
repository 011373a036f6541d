//! When a round kills.

use std::time::Duration;

use dueline_testkit::model::Random;

/// Kills of one directory.
pub(crate) const KILLS_PER_ROUND: u64 = 20;
const IN_START_UP_PERCENT: u64 = 30;
/// A start takes a few hundredths of a second, more on a busy machine.
const START_UP_MS: u64 = 120;
const AFTER_READY_MS: (u64, u64) = (5, 500);

/// A moment at which a server is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kill {
    /// This long after its process was started.
    InStartUp(Duration),
    /// This long after it said that it listens.
    AfterReady(Duration),
}

/// The kills of a round.
pub(crate) fn kills(random: &mut Random, count: u64) -> Vec<Kill> {
    let mut kills = Vec::new();
    for _ in 0..count {
        kills.push(if random.chance(IN_START_UP_PERCENT) {
            Kill::InStartUp(Duration::from_millis(random.below(START_UP_MS)))
        } else {
            let (from, to) = AFTER_READY_MS;
            Kill::AfterReady(Duration::from_millis(from + random.below(to - from)))
        });
    }
    kills
}

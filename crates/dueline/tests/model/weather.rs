//! What goes wrong in a history.

use dueline_testkit::model::{Mishap, Random};

/// What a history is made of; all of it follows from the seed.
#[derive(Clone, Debug)]
pub struct Weather {
    pub mishaps: Vec<Mishap>,
    pub per_mille: u64,
    pub crashes: bool,
    pub clock_steps: bool,
    pub skew_ms: [i64; 2],
    pub steps: u64,
}

impl Weather {
    pub fn of(random: &mut Random) -> Self {
        let all = [
            Mishap::Unavailable,
            Mishap::Full,
            Mishap::UnknownWritten,
            Mishap::UnknownNotWritten,
            Mishap::UnknownLate,
        ];
        let mishaps = all.into_iter().filter(|_| random.chance(50)).collect();
        let skews = [0, 0, 0, 2_000, -2_000, 60_000, -60_000];
        Self {
            mishaps,
            per_mille: random.pick(&[0, 5, 20, 80, 200]),
            crashes: random.chance(50),
            clock_steps: random.chance(30),
            skew_ms: [random.pick(&skews), random.pick(&skews)],
            steps: 100 + random.below(500),
        }
    }
}

//! Seeded choices.

use dueline::runtime::Entropy;
use dueline_testkit::SequenceEntropy;

/// A stream of choices that depends on nothing but the numbers it was made of.
#[derive(Debug)]
pub struct Random(SequenceEntropy);

impl Random {
    /// The stream of these numbers.
    pub fn of(parts: &[u64]) -> Self {
        let mut seed = 0;
        for part in parts {
            seed = SequenceEntropy::new(seed ^ *part).next_u64();
        }
        Self(SequenceEntropy::new(seed))
    }

    /// The stream of a seed and a name.
    pub fn of_name(seed: u64, number: u64, name: &[u8]) -> Self {
        let mut parts = vec![seed, number];
        parts.extend(name.iter().map(|byte| u64::from(*byte)));
        Self::of(&parts)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these; nothing of nothing.
    pub fn pick<T: Copy>(&self, choices: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        choices.get(index).copied()
    }
}

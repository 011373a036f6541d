use std::sync::atomic::{AtomicU64, Ordering};

use dueline::runtime::Entropy;

/// Random bits that are the same in every run: the SplitMix64 sequence of a seed.
#[derive(Debug)]
pub struct SequenceEntropy {
    state: AtomicU64,
}

impl SequenceEntropy {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            state: AtomicU64::new(seed),
        }
    }
}

impl Entropy for SequenceEntropy {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self
            .state
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use dueline::runtime::Entropy;

/// Random bits of the operating system.
#[derive(Debug)]
pub struct OsEntropy {
    /// What the bits go on from should the system fail after it has worked once.
    state: AtomicU64,
}

impl OsEntropy {
    /// Entropy of a system that gives some now.
    ///
    /// # Errors
    /// If it gives none.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            state: AtomicU64::new(getrandom::u64().map_err(io::Error::from)?),
        })
    }

    /// The next of a sequence that nobody knows the start of.
    fn sequence(&self) -> u64 {
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

impl Entropy for OsEntropy {
    fn next_u64(&self) -> u64 {
        getrandom::u64().unwrap_or_else(|_| self.sequence())
    }
}

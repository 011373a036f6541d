/// Draws that are the same in every run of a seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The draws of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits: SplitMix64.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one; 0 below 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64().checked_rem(end).unwrap_or(0)
    }

    /// True in this many of a hundred draws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        assert!(!of.is_empty(), "there is nothing to pick from");
        let index = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        #[allow(
            clippy::indexing_slicing,
            reason = "a draw below the length of a slice that is not empty"
        )]
        of[index]
    }
}

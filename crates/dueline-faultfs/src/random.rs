/// Random bits that are the same for a seed: SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        // Mixed once, so that neighbouring seeds do not share their beginnings shifted by one.
        let mut mixed = Self(seed);
        Self(mixed.draw())
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// True so often.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }
}

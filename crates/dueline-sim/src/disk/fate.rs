use dueline_testkit::model::Random;

/// How often calls of the store go wrong, in thousandths of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFaults {
    /// Any call: it takes up to a third of a second.
    pub slow: u64,
    /// Any call: it takes up to a quarter of a minute.
    pub very_slow: u64,
    /// A read or a commit: `Unavailable`, nothing done.
    pub unavailable: u64,
    /// A commit: `Full`, nothing done.
    pub full: u64,
    /// A commit: done, and its answer lost.
    pub unknown_written: u64,
    /// A commit: not done, and `Unknown`.
    pub unknown_not_written: u64,
    /// A commit: `Unknown`, and done later. Only where the store is another machine.
    pub unknown_late: u64,
    /// A commit: an I/O error, after which its pages may come back.
    pub io_error: u64,
    /// A page: cut short, with a cursor.
    pub short_page: u64,
}

impl StoreFaults {
    /// Rates of a seed: each kind of fault is on or off.
    pub fn of(random: &mut Random, is_remote: bool) -> Self {
        let mut rate = |of: &[u64]| {
            if random.chance(50) {
                random.pick(of)
            } else {
                0
            }
        };
        let faults = Self {
            slow: rate(&[5, 30, 100]),
            very_slow: rate(&[0, 1, 4]),
            unavailable: rate(&[3, 20, 100]),
            full: rate(&[3, 20]),
            unknown_written: rate(&[5, 30, 100]),
            unknown_not_written: rate(&[5, 30, 100]),
            unknown_late: rate(&[5, 30]),
            io_error: rate(&[5, 20]),
            short_page: rate(&[50, 300]),
        };
        if is_remote {
            Self {
                io_error: 0,
                ..faults
            }
        } else {
            Self {
                unknown_late: 0,
                ..faults
            }
        }
    }
}

/// What befalls a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    Unavailable,
    Full,
    UnknownWritten,
    UnknownNotWritten,
    UnknownLate,
    IoError,
}

impl StoreFaults {
    pub(super) fn fate(&self, random: &mut Random) -> Fate {
        let mut draw = random.below(1_000);
        for (rate, fate) in [
            (self.unavailable, Fate::Unavailable),
            (self.full, Fate::Full),
            (self.unknown_written, Fate::UnknownWritten),
            (self.unknown_not_written, Fate::UnknownNotWritten),
            (self.unknown_late, Fate::UnknownLate),
            (self.io_error, Fate::IoError),
        ] {
            if draw < rate {
                return fate;
            }
            draw -= rate;
        }
        Fate::Done
    }

    /// How long a call takes beyond nothing, in microseconds.
    pub(super) fn delay_us(&self, random: &mut Random) -> u64 {
        let draw = random.below(1_000);
        if draw < self.slow {
            1 + random.below(300_000)
        } else if draw < self.slow + self.very_slow {
            random.below(15_000_000)
        } else {
            0
        }
    }
}

use std::ops::Sub;

/// How often each call was made, failed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// `get`.
    pub gets: u64,
    /// `get_many`.
    pub get_manys: u64,
    /// `scan`.
    pub scans: u64,
    /// `scan_many`.
    pub scan_manys: u64,
    /// `due_wakes`.
    pub due_wakes: u64,
    /// `partitions`, `audit_wakes`, `stats` and `probe` together.
    pub upkeep: u64,
    /// `apply`.
    pub applies: u64,
    /// `apply_all`.
    pub groups: u64,
    /// `settle_wake`.
    pub settle_wakes: u64,
    /// Batches, alone or in groups.
    pub batches: u64,
    /// Settles, alone or in groups.
    pub settles: u64,
}

impl CallCounts {
    /// Reads of rows.
    pub fn row_reads(&self) -> u64 {
        self.gets + self.get_manys + self.scans + self.scan_manys
    }

    /// Commits asked for: transactions, on a store that gives each call its own.
    pub fn commits(&self) -> u64 {
        self.applies + self.groups + self.settle_wakes
    }
}

impl Sub for CallCounts {
    type Output = Self;

    /// What was asked between two readings.
    fn sub(self, earlier: Self) -> Self {
        Self {
            gets: self.gets - earlier.gets,
            get_manys: self.get_manys - earlier.get_manys,
            scans: self.scans - earlier.scans,
            scan_manys: self.scan_manys - earlier.scan_manys,
            due_wakes: self.due_wakes - earlier.due_wakes,
            upkeep: self.upkeep - earlier.upkeep,
            applies: self.applies - earlier.applies,
            groups: self.groups - earlier.groups,
            settle_wakes: self.settle_wakes - earlier.settle_wakes,
            batches: self.batches - earlier.batches,
            settles: self.settles - earlier.settles,
        }
    }
}

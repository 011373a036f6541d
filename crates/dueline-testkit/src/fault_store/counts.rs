use std::ops::Sub;

/// How often each call was made, failed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls of `get`.
    pub gets: u64,
    /// Calls of `get_many`, one each however many keys.
    pub get_manys: u64,
    /// Calls of `scan`, one a page.
    pub scans: u64,
    /// Calls of `scan_many`, one each however many ranges.
    pub scan_manys: u64,
    /// Calls of `due_wakes`, one a page.
    pub due_wakes: u64,
    /// `partitions`, `audit_wakes`, `stats` and `probe` together.
    pub upkeep: u64,
    /// Calls of `apply`, lost guards included.
    pub applies: u64,
    /// Calls of `apply_all`, one a group.
    pub groups: u64,
    /// Calls of `settle_wake`, those in a group not counted.
    pub settle_wakes: u64,
    /// Batches, alone or in groups.
    pub batches: u64,
    /// Settles, alone or in groups.
    pub settles: u64,
}

impl CallCounts {
    /// Calls that read rows: `get`, `get_many`, `scan` and `scan_many` together.
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

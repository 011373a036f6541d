use crate::limits::{BATCH_BYTES_MAX, BATCH_OPS_MAX};

/// How large the database may grow, and how much of it is kept in reserve.
///
/// Puts are refused as `Full` once the size reaches `limit_bytes - reserve_bytes`; deletes, and the
/// engine's own moves, go on into the reserve, so that a full store still records its back-offs and
/// can be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit {
    limit_bytes: u64,
    reserve_bytes: u64,
}

/// Pages of 4 KiB by which one batch can grow a tree: each operation may split a path of the tree,
/// and the payload itself takes pages. Deletes can split pages too.
const BATCH_GROWTH_PAGES: u64 = (BATCH_OPS_MAX * 21 + BATCH_BYTES_MAX / 2_048) as u64;
const PAGE_BYTES: u64 = 4_096;

impl SizeLimit {
    /// A limit with the reserve that goes with it: room for the growth of two batches of the
    /// largest size (20 MiB) or a sixty-fourth of the limit, whichever is more, but at most a
    /// quarter of the limit.
    pub fn new(limit_bytes: u64) -> Self {
        let reserve_bytes = (2 * BATCH_GROWTH_PAGES * PAGE_BYTES).max(limit_bytes / 64);
        Self {
            limit_bytes,
            reserve_bytes: reserve_bytes.min(limit_bytes / 4),
        }
    }

    /// The same limit with another reserve, at most the limit.
    #[must_use]
    pub fn with_reserve(mut self, reserve_bytes: u64) -> Self {
        self.reserve_bytes = reserve_bytes.min(self.limit_bytes);
        self
    }

    /// The size the database may not pass, in bytes. A host sets it as its engine's hard limit.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// The size from which ordinary puts are refused, in bytes.
    pub fn soft_limit_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.reserve_bytes)
    }
}

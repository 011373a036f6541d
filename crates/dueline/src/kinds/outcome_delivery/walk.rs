//! Reading what waits in an outbox, a page at a time.

use std::collections::VecDeque;

use super::OutboxName;
use super::outbox::range;
use super::rows::{PENDING, Pending};
use crate::store::{Key, ScanRange, StoreError, Value};
use crate::timers::TimerCtx;

/// How many rows a page has: their values are held in memory, up to 256 KiB each.
const PAGE_ROWS: usize = 16;

/// The rows between two sequences that wait, in their order.
pub(super) struct Walk {
    range: Option<ScanRange>,
    page: VecDeque<(Key, Value)>,
}

impl Walk {
    /// From one sequence to another, both included.
    pub(super) fn new(name: &OutboxName, first: u64, last: u64) -> Self {
        let range =
            (first <= last).then(|| range(PENDING, name.as_bytes(), (first, last), PAGE_ROWS));
        Self {
            range,
            page: VecDeque::new(),
        }
    }

    /// The next row and its sequence; a key that has none is warned of and passed over.
    pub(super) async fn next(
        &mut self,
        ctx: &TimerCtx<'_>,
    ) -> Result<Option<(u64, Value)>, StoreError> {
        loop {
            while let Some((key, value)) = self.page.pop_front() {
                match Pending::sequence_of(&key) {
                    Ok(sequence) => return Ok(Some((sequence, value))),
                    Err(malformed) => tracing::warn!(
                        partition = %ctx.partition(),
                        key = %key.escape_ascii(),
                        %malformed,
                        "a key of an outbox does not decode; its row stays where it is"
                    ),
                }
            }
            let Some(range) = &mut self.range else {
                return Ok(None);
            };
            let page = ctx.scan(range).await?;
            self.page = page.rows.into();
            match page.next {
                Some(next) => range.after = Some(next),
                None => self.range = None,
            }
        }
    }
}

use bytes::Bytes;

use super::named::{NameEntry, name_key, require_kind};
use super::{ListCursor, TimerState, TimerStates, TimerView};
use crate::rows::{DeadKey, NameKey, TimerKey, class, is_of_class};
use crate::store::{Cursor, Key, Partition, ScanRange, Value};
use crate::timers::{TimerError, TimerKind, Timers};

/// Most timers of one page; a larger limit counts as this.
pub const LIST_LIMIT_MAX: usize = 1_000;

/// Most rows one call reads for a page: a filter that few pass ends in short pages, not long calls.
const SCANNED_MAX: usize = 4_000;

/// Rows read at a time, and the bytes of payload behind which a page ends early: they bound what
/// lies in memory.
pub(super) const CHUNK_ROWS: usize = 128;
pub(super) const PAGE_BYTES: usize = 8 * 1_024 * 1_024;

/// Which timers of a kind to list, and in which order.
///
/// With a prefix (an empty one is one too) the list walks the *names*, in the order of their
/// references: a timer that exists throughout is listed exactly once, however it moves meanwhile,
/// dead ones included. Without one it walks the *lane* in the order of the due, then the dead in the
/// order of their death, anonymous timers too: a timer that moves meanwhile may be listed twice or
/// not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The kind whose timers are listed.
    pub kind: TimerKind,
    /// Only timers in these states, as stored.
    pub states: TimerStates,
    /// Only timers that are looked at next before this, in milliseconds since 1970: see
    /// [`TimerView::next_at_ms`]. Leaves dead ones out.
    pub due_before_ms: Option<u64>,
    /// Only named timers whose reference begins like this, in the order of the references.
    pub prefix: Option<Bytes>,
    /// Where the page before ended.
    pub after: Option<ListCursor>,
    /// Most timers wanted, 1 to 1,000. A page may be shorter, even empty, and still carry `next`.
    pub limit: usize,
}

impl ListQuery {
    /// Every timer of a kind: the lane in the order of the due, then the dead, 100 at a time.
    pub fn new(kind: TimerKind) -> Self {
        Self {
            kind,
            states: TimerStates::all(),
            due_before_ms: None,
            prefix: None,
            after: None,
            limit: 100,
        }
    }

    fn validate(&self) -> Result<(), TimerError> {
        require_kind(self.kind)?;
        if let Some(prefix) = &self.prefix {
            name_key(self.kind, prefix)?;
        }
        page_limit(self.limit).map(|_| ())
    }

    /// Whether a timer in this state with this next time is wanted.
    fn admits(&self, state: TimerState, next_at_ms: u64) -> bool {
        self.states.contains(state)
            && self
                .due_before_ms
                .is_none_or(|before| state != TimerState::Dead && next_at_ms < before)
    }

    /// The ranges to walk, one after the other.
    fn ranges(&self) -> Vec<(Key, Key)> {
        if let Some(prefix) = &self.prefix {
            return vec![name_range(self.kind, prefix)];
        }
        let mut ranges = Vec::with_capacity(2);
        let end = match self.due_before_ms {
            None => TimerKey::lane_end(self.kind),
            // Nothing is due before 0.
            Some(before) => match before.checked_sub(1) {
                Some(last_ms) => TimerKey::lane_due_end(self.kind, last_ms),
                None => TimerKey::lane_start(self.kind),
            },
        };
        ranges.push((TimerKey::lane_start(self.kind), end));
        if self.states.contains(TimerState::Dead) && self.due_before_ms.is_none() {
            ranges.push((DeadKey::lane_start(self.kind), DeadKey::lane_end(self.kind)));
        }
        ranges
    }
}

/// The names of a kind that begin with a prefix.
fn name_range(kind: TimerKind, prefix: &Bytes) -> (Key, Key) {
    let start = NameKey {
        kind,
        reference: prefix.clone(),
    }
    .encode();
    // The first key behind the prefix: its last byte that can grow, grown, and nothing behind. The
    // class letter can always grow.
    let mut end = start.to_vec();
    while end.pop_if(|byte| *byte == u8::MAX).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    (start, Key::from(end))
}

/// Timers in the order of their query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerPage {
    /// The timers of the page, in the order of the walk.
    pub timers: Vec<TimerView>,
    /// Where to go on; `None` at the end.
    pub next: Option<ListCursor>,
}

fn payload_bytes(page: &TimerPage) -> usize {
    page.timers.iter().map(|view| view.payload.len()).sum()
}

/// The limit of one page, within bounds.
pub(super) fn page_limit(limit: usize) -> Result<usize, TimerError> {
    if limit == 0 {
        return Err(TimerError::invalid("a page needs a limit of at least 1"));
    }
    Ok(limit.min(LIST_LIMIT_MAX))
}

impl Timers {
    /// One page of the timers of a kind: see [`ListQuery`].
    ///
    /// # Errors
    /// `Invalid` for kind 0, a prefix over 512 bytes, a limit of 0 or the cursor of another query;
    /// `Contended` if a name was moved eight times while it was read; what the store says.
    pub async fn list(
        &self,
        partition: &Partition,
        query: &ListQuery,
    ) -> Result<TimerPage, TimerError> {
        query.validate()?;
        let mut position = match &query.after {
            Some(cursor) => Some(cursor.position(query)?.clone()),
            None => None,
        };
        let limit = page_limit(query.limit)?;
        let mut page = TimerPage::default();
        let mut scanned = 0;
        let mut ranges = resume(query.ranges(), position.as_ref())?
            .into_iter()
            .peekable();
        while let Some((start, end)) = ranges.peek().cloned() {
            let wanted = limit.saturating_sub(page.timers.len());
            if wanted == 0 || scanned >= SCANNED_MAX || payload_bytes(&page) >= PAGE_BYTES {
                page.next = position.map(|position| ListCursor::behind(query, position));
                return Ok(page);
            }
            let cursor = position
                .clone()
                .filter(|position| *position >= start && *position < end)
                .map(Cursor::behind);
            let range = ScanRange::new(start, end, wanted.min(CHUNK_ROWS)).after(cursor);
            let found = self.store().scan(partition, &range).await?;
            scanned += found.rows.len().max(1);
            if let Some((last, _)) = found.rows.last() {
                position = Some(last.clone());
            }
            self.collect(partition, query, &found.rows, &mut page.timers)
                .await?;
            if let Some(cursor) = found.next {
                position = Some(cursor.position().clone());
            } else {
                ranges.next();
            }
        }
        Ok(page)
    }

    /// Adds the rows that pass the filters; of names, the timers they point at.
    async fn collect(
        &self,
        partition: &Partition,
        query: &ListQuery,
        rows: &[(Key, Value)],
        timers: &mut Vec<TimerView>,
    ) -> Result<(), TimerError> {
        let mut entries = Vec::new();
        for (key, value) in rows {
            if is_of_class(key, class::NAME) {
                entries.extend(self.admitted_name(partition, query, key, value));
                continue;
            }
            // A malformed key is on its way to quarantine and is found there.
            if let Some(view) = TimerView::read(key, value)
                && query.admits(view.state, view.next_at_ms)
            {
                timers.push(view);
            }
        }
        let targets: Vec<Key> = entries.iter().map(NameEntry::target).collect();
        let values = self.store().get_many(partition, &targets).await?;
        for ((entry, target), value) in entries.into_iter().zip(targets).zip(values) {
            let view = match value {
                Some(value) => {
                    let state = entry.state();
                    TimerView::read(&target, &value).map(|view| view.under_name(state))
                }
                // A move fell between the two reads.
                None => {
                    self.get(partition, entry.name.kind, &entry.name.reference)
                        .await?
                }
            };
            timers.extend(view.filter(|view| query.admits(view.state, view.next_at_ms)));
        }
        Ok(())
    }

    fn admitted_name(
        &self,
        partition: &Partition,
        query: &ListQuery,
        key: &Key,
        value: &Value,
    ) -> Option<NameEntry> {
        let entry = NameKey::decode(key)
            .ok()
            .and_then(|name| NameEntry::decode(&name, value.clone()).ok());
        if entry.is_none() {
            tracing::warn!(%partition, kind = query.kind.0, "a name row does not decode");
        }
        entry.filter(|entry| query.admits(entry.state(), entry.row.due_ms))
    }
}

/// The ranges from the one that holds the position on.
fn resume(ranges: Vec<(Key, Key)>, position: Option<&Key>) -> Result<Vec<(Key, Key)>, TimerError> {
    let Some(position) = position else {
        return Ok(ranges);
    };
    let rest: Vec<_> = ranges
        .into_iter()
        .skip_while(|(start, end)| position < start || position >= end)
        .collect();
    if rest.is_empty() {
        return Err(TimerError::invalid("the cursor belongs to another query"));
    }
    Ok(rest)
}

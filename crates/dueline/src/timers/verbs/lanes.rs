use super::{TimerState, TimerView};
use crate::ordered::OrderedMap;
use crate::rows::{DeadKey, TimerKey, class, class_end, class_start, lane_head};
use crate::store::{Key, Partition, ScanRange};
use crate::timers::{TimerError, TimerKind, Timers};

/// Up to how many rows of a lane are counted.
pub const LANE_COUNT_MAX: usize = 1_000;

/// Rows read at a time while counting: bounds what lies in memory.
const COUNT_PAGE_ROWS: usize = 64;

/// How many rows, counted up to [`LANE_COUNT_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCount {
    /// How many rows there are, or the bound at which counting stopped.
    pub rows: usize,
    /// Whether there are more.
    pub more: bool,
}

/// One kind of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSummary {
    /// The kind; 0 stands for rows too damaged to name theirs.
    pub kind: TimerKind,
    /// When its first timer is looked at, in milliseconds since 1970; `None` without timers.
    pub first_due_ms: Option<u64>,
    /// Since when it is paused, in milliseconds since 1970; `None` if it is not.
    pub paused_since_ms: Option<u64>,
    /// Timers that are not dead.
    pub timers: LaneCount,
    /// Of the counted ones those that have failed and wait for their next attempt.
    pub retrying: usize,
    /// Of the counted ones those whose calls may be under way.
    pub claimed: usize,
    /// Timers of the kind in the dead class.
    pub dead: LaneCount,
}

/// Rows of a class and a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    rows: LaneCount,
    retrying: usize,
    claimed: usize,
}

fn summary_of(lanes: &mut OrderedMap<TimerKind, LaneSummary>, kind: TimerKind) -> &mut LaneSummary {
    lanes.entry(kind).or_insert(LaneSummary {
        kind,
        first_due_ms: None,
        paused_since_ms: None,
        timers: LaneCount::default(),
        retrying: 0,
        claimed: 0,
        dead: LaneCount::default(),
    })
}

impl Timers {
    /// The kinds of a partition that have timers, dead timers or a pause, ascending.
    ///
    /// Finds them by one seek per kind present and counts up to 1,000 rows of each.
    ///
    /// # Errors
    /// What the store says.
    pub async fn lanes(&self, partition: &Partition) -> Result<Vec<LaneSummary>, TimerError> {
        let mut lanes: OrderedMap<TimerKind, LaneSummary> = OrderedMap::new();
        for (kind, first) in self.kinds_of(partition, class::TIMER).await? {
            let first_due_ms = lane_head(&first).map(|head| head.due_ms);
            let (start, end) = (TimerKey::lane_start(kind), TimerKey::lane_end(kind));
            let start = start.min(first);
            let counted = self.count(partition, start, end).await?;
            let summary = summary_of(&mut lanes, kind);
            summary.first_due_ms = first_due_ms;
            summary.timers = counted.rows;
            summary.retrying = counted.retrying;
            summary.claimed = counted.claimed;
        }
        for (kind, first) in self.kinds_of(partition, class::DEAD).await? {
            let (start, end) = (DeadKey::lane_start(kind), DeadKey::lane_end(kind));
            let start = start.min(first);
            let dead = self.count(partition, start, end).await?;
            summary_of(&mut lanes, kind).dead = dead.rows;
        }
        for (kind, since_ms) in self.paused(partition).await? {
            summary_of(&mut lanes, kind).paused_since_ms = Some(since_ms);
        }
        Ok(lanes.into_values().collect())
    }

    /// The kinds present in a class, each with its first key: a seek each.
    async fn kinds_of(
        &self,
        partition: &Partition,
        class: u8,
    ) -> Result<Vec<(TimerKind, Key)>, TimerError> {
        let mut kinds = Vec::new();
        let mut start = class_start(class);
        loop {
            let range = ScanRange::new(start, class_end(class), 1);
            let page = self.store().scan(partition, &range).await?;
            let Some((key, _)) = page.rows.into_iter().next() else {
                return Ok(kinds);
            };
            let kind = key.get(2).copied().map_or(TimerKind::INVALID, TimerKind);
            start = match kind.0.checked_add(1) {
                Some(next) => Key::copy_from_slice(&[class, 0, next]),
                None => class_end(class),
            };
            kinds.push((kind, key));
        }
    }

    async fn count(
        &self,
        partition: &Partition,
        start: Key,
        end: Key,
    ) -> Result<Counted, TimerError> {
        let now_ms = self.runtime().now_ms();
        let mut counted = Counted::default();
        let mut cursor = None;
        loop {
            let limit = COUNT_PAGE_ROWS.min(LANE_COUNT_MAX.saturating_sub(counted.rows.rows));
            let range = ScanRange::new(start.clone(), end.clone(), limit).after(cursor);
            let page = self.store().scan(partition, &range).await?;
            for (key, value) in &page.rows {
                let view = TimerView::read(key, value);
                match view.map(|view| view.state_at(now_ms)) {
                    Some(TimerState::Retrying) => counted.retrying += 1,
                    Some(TimerState::Claimed) => counted.claimed += 1,
                    _ => {}
                }
            }
            counted.rows.rows += page.rows.len();
            cursor = page.next;
            counted.rows.more = cursor.is_some();
            if cursor.is_none() || counted.rows.rows >= LANE_COUNT_MAX {
                return Ok(counted);
            }
        }
    }
}

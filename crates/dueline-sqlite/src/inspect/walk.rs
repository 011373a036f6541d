//! One walk over all rows, in the order in which they lie: within a partition the pauses come
//! before the timers.

use std::collections::BTreeSet;

use bytes::Bytes;
use dueline::rows::{DeadKey, NameKey, NameRow, PauseKey, TimerKey, class, is_of_class, lane_head};
use dueline::store::Partition;
use dueline::timers::TimerKind;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::wakes::{EarliestWakes, unsigned};
use super::{Contents, LaneWithoutWake, NameAdrift};

/// Why a walk ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum WalkError {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the name of partition {part} is missing or malformed")]
    PartitionName { part: i64 },
}

struct Walk<'a> {
    now_ms: u64,
    wakes: EarliestWakes,
    partition_name: CachedStatement<'a>,
    row_present: CachedStatement<'a>,
    contents: Contents,
}

/// The partition whose rows are being read.
struct Here {
    part: i64,
    paused: BTreeSet<TimerKind>,
    last_lane: Option<TimerKind>,
}

/// Rows of names come with their value; of the others the key says enough.
const ROWS: &str = "SELECT part, key, CASE WHEN substr(key, 1, 2) = x'6e00' THEN value END \
    FROM kv ORDER BY part, key";

pub(super) fn walk(connection: &Connection, now_ms: u64) -> Result<Contents, WalkError> {
    let mut walk = Walk {
        now_ms,
        wakes: EarliestWakes::read(connection)?,
        partition_name: connection.prepare_cached("SELECT name FROM part WHERE id = ?1")?,
        row_present: connection.prepare_cached("SELECT 1 FROM kv WHERE part = ?1 AND key = ?2")?,
        contents: Contents::default(),
    };
    let mut statement = connection.prepare(ROWS)?;
    let mut rows = statement.query([])?;
    let mut here: Option<Here> = None;
    while let Some(row) = rows.next()? {
        let part: i64 = row.get(0)?;
        let key = Bytes::from(row.get::<_, Vec<u8>>(1)?);
        let value: Option<Vec<u8>> = row.get(2)?;
        let here = match &mut here {
            Some(here) if here.part == part => here,
            other => other.insert(Here {
                part,
                paused: BTreeSet::new(),
                last_lane: None,
            }),
        };
        walk.row(here, &key, value.map(Bytes::from))?;
    }
    walk.contents.wakes = walk.wakes.count;
    walk.contents.partitions =
        unsigned(connection.query_row("SELECT COUNT(*) FROM part", [], |row| row.get(0))?);
    Ok(walk.contents)
}

impl Walk<'_> {
    fn row(&mut self, here: &mut Here, key: &Bytes, value: Option<Bytes>) -> Result<(), WalkError> {
        if is_of_class(key, class::PAUSE) {
            if let Ok(pause) = PauseKey::decode(key) {
                here.paused.insert(pause.kind);
                self.contents.kinds.entry(pause.kind).or_default().paused += 1;
            }
        } else if is_of_class(key, class::DEAD) {
            if let Ok(dead) = DeadKey::decode(key) {
                self.contents.kinds.entry(dead.kind).or_default().dead += 1;
            }
        } else if is_of_class(key, class::QUARANTINE) {
            self.contents.quarantined += 1;
        } else if is_of_class(key, class::NAME) {
            self.name(here, key, value)?;
        } else if is_of_class(key, class::TIMER) {
            self.timer(here, key)?;
        }
        Ok(())
    }

    fn timer(&mut self, here: &mut Here, key: &Bytes) -> Result<(), WalkError> {
        if let Some(head) = lane_head(key)
            && here.last_lane != Some(head.kind)
        {
            here.last_lane = Some(head.kind);
            self.lane(here, head.kind, head.due_ms)?;
        }
        let Ok(timer) = TimerKey::decode(key) else {
            self.contents.malformed += 1;
            return Ok(());
        };
        let counts = self.contents.kinds.entry(timer.kind).or_default();
        counts.timers += 1;
        counts.overdue += u64::from(timer.due_ms < self.now_ms);
        let scheduled_ms = Some(timer.generation >> 20);
        self.contents.newest_scheduling_ms = self.contents.newest_scheduling_ms.max(scheduled_ms);
        Ok(())
    }

    /// Looks at the first row of a lane.
    fn lane(&mut self, here: &Here, kind: TimerKind, due_ms: u64) -> Result<(), WalkError> {
        if here.paused.contains(&kind) {
            return Ok(());
        }
        let wake_ms = self.wakes.of(here.part, kind);
        if wake_ms.is_some_and(|at_ms| at_ms <= due_ms.max(self.now_ms)) {
            return Ok(());
        }
        let partition = self.partition(here.part)?;
        self.contents.lanes_without_wake.add(|| LaneWithoutWake {
            partition,
            kind,
            due_ms,
            wake_ms,
        });
        Ok(())
    }

    fn name(&mut self, here: &Here, key: &Bytes, value: Option<Bytes>) -> Result<(), WalkError> {
        let Ok(name) = NameKey::decode(key) else {
            return Ok(());
        };
        let target = value.and_then(|value| NameRow::decode(&value).ok());
        let present = match target.map(|row| row.target(&name)) {
            Some(target) => self
                .row_present
                .query_row(params![here.part, target.as_ref()], |_| Ok(()))
                .optional()?
                .is_some(),
            None => false,
        };
        if !present {
            let partition = self.partition(here.part)?;
            self.contents
                .names_adrift
                .add(|| NameAdrift { partition, name });
        }
        Ok(())
    }

    fn partition(&mut self, part: i64) -> Result<Partition, WalkError> {
        let name: Option<Vec<u8>> = self
            .partition_name
            .query_row([part], |row| row.get(0))
            .optional()?;
        name.and_then(|name| Partition::new(name).ok())
            .ok_or(WalkError::PartitionName { part })
    }
}

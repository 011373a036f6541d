use std::collections::BTreeMap;

use dueline::timers::TimerKind;
use rusqlite::Connection;

/// The earliest wake of each lane, by the number of its partition.
#[derive(Debug, Default)]
pub(super) struct EarliestWakes {
    at_ms: BTreeMap<(i64, TimerKind), u64>,
    pub(super) count: u64,
}

impl EarliestWakes {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection
            .prepare("SELECT part, kind, MIN(at), COUNT(*) FROM wake GROUP BY part, kind")?;
        let mut rows = statement.query([])?;
        let mut wakes = Self::default();
        while let Some(row) = rows.next()? {
            let kind = TimerKind(row.get(1)?);
            wakes
                .at_ms
                .insert((row.get(0)?, kind), unsigned(row.get(2)?));
            wakes.count += unsigned(row.get(3)?);
        }
        Ok(wakes)
    }

    pub(super) fn of(&self, part: i64, kind: TimerKind) -> Option<u64> {
        self.at_ms.get(&(part, kind)).copied()
    }
}

/// SQLite's integers are signed; no count and no time of ours is negative.
pub(super) fn unsigned(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

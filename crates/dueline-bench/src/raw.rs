//! The yardstick: the same effects as plain SQL on one connection, nothing checked but the commit.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

/// Inserts `timers` rows, then fires them `group` a commit: read the first, delete each, bump one
/// of 64 counters each. Returns the time of the firing.
pub(crate) fn fire(
    path: &Path,
    timers: u64,
    group: u64,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
         CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;",
    )?;
    let write = connection.transaction()?;
    {
        let mut insert = write.prepare("INSERT INTO kv VALUES (?1, ?2)")?;
        for timer in 0..timers {
            let mut key = [b't'; 24];
            key.iter_mut()
                .skip(1)
                .zip(timer.to_be_bytes())
                .for_each(|(to, from)| *to = from);
            insert.execute(params![key, [7u8; 100]])?;
        }
    }
    write.commit()?;
    let started = Instant::now();
    let mut left = timers;
    while left > 0 {
        let write = connection.transaction()?;
        {
            let mut page = write.prepare_cached(
                "SELECT key, value FROM kv WHERE key >= x'74' ORDER BY key LIMIT ?1",
            )?;
            let keys: Vec<Vec<u8>> = page
                .query_map([i64::try_from(group)?], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let mut delete = write.prepare_cached("DELETE FROM kv WHERE key = ?1")?;
            let mut get = write.prepare_cached("SELECT value FROM kv WHERE key = ?1")?;
            let mut put = write.prepare_cached("INSERT OR REPLACE INTO kv VALUES (?1, ?2)")?;
            for key in keys {
                delete.execute([&key])?;
                let counter = vec![b'c', key.get(8).copied().unwrap_or(0) % 64];
                let seen: Option<Vec<u8>> = get
                    .query_map([&counter], |row| row.get(0))?
                    .next()
                    .transpose()?;
                let next = seen
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(0, u64::from_be_bytes)
                    + 1;
                put.execute(params![counter, next.to_be_bytes().to_vec()])?;
                left = left.saturating_sub(1);
            }
        }
        write.commit()?;
    }
    Ok(started.elapsed())
}

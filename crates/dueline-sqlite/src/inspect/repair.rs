use std::path::Path;

use dueline::sql::schema::unclean_mark;
use dueline::store::{Partition, StoreError, WakeRepair};
use rusqlite::config::DbConfig;

use super::Places;
use crate::error::OpenError;
use crate::left_log::LeftLog;
use crate::lock::FileLock;
use crate::open::{WriteSide, open_write_side};
use crate::options::Options;

/// How many partitions are looked at in one transaction.
const PARTITIONS_PER_STEP: usize = 1_000;

pub(super) fn repair_wakes(
    path: &Path,
    options: &Options,
) -> Result<Places<WakeRepair>, OpenError> {
    LeftLog::beside(path)?;
    // A repair must not create what it was to mend.
    std::fs::metadata(path).map_err(|error| OpenError::cannot_open(path, error))?;
    let _lock = FileLock::take(path)?;
    let mut side = open_write_side(path, options)?;
    if unclean_mark(&side.backend).map_err(|error| OpenError::from_store(path, error))? {
        // The mark stays, and so must the log: the one without the other looks like a loss.
        side.backend
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(|error| OpenError::from_sqlite(path, error))?;
    }
    let mut repairs = Places::default();
    let mut after: Option<Partition> = None;
    loop {
        side.begin()
            .map_err(|error| OpenError::from_sqlite(path, error))?;
        let step = step(&mut side, after.as_ref(), &mut repairs);
        after = step.map_err(|error| OpenError::from_store(path, error))?;
        side.backend
            .control("COMMIT")
            .map_err(|error| OpenError::from_sqlite(path, error))?;
        if after.is_none() {
            return Ok(repairs);
        }
    }
}

fn step(
    side: &mut WriteSide,
    after: Option<&Partition>,
    repairs: &mut Places<WakeRepair>,
) -> Result<Option<Partition>, StoreError> {
    let (page, _) = side
        .writer
        .audit(&side.backend, after, PARTITIONS_PER_STEP)?;
    for repair in page.repairs {
        repairs.add(|| repair);
    }
    Ok(page.next)
}

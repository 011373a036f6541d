//! The limits of the contract, checked before anything is read. Every store calls these first.

use super::{Batch, Group, Key, Precondition, ScanRange, StoreError, Value, Write};
use crate::limits::{
    BATCH_BYTES_MAX, BATCH_OPS_MAX, KEY_BYTES_MAX, SCAN_RANGES_MAX, VALUE_BYTES_MAX,
};
use crate::mutants::{Mutant, planted};

/// Checks the size of a key.
///
/// # Errors
/// `Invalid` with the figure.
pub fn validate_key(key: &Key) -> Result<(), StoreError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(StoreError::invalid(format!(
            "a key has at most {KEY_BYTES_MAX} bytes, this one has {}",
            key.len()
        )));
    }
    Ok(())
}

fn validate_value(value: &Value) -> Result<(), StoreError> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(StoreError::invalid(format!(
            "a value has at most {VALUE_BYTES_MAX} bytes, this one has {}",
            value.len()
        )));
    }
    Ok(())
}

/// Checks a batch: operations, then bytes, then each key and value in list order, then that no timer's name
/// and no row of a built-in kind is written twice.
///
/// # Errors
/// `Invalid` with the figure, or with the key of the row.
pub fn validate_batch(batch: &Batch) -> Result<(), StoreError> {
    if batch.ops() > BATCH_OPS_MAX {
        return Err(StoreError::invalid(format!(
            "a batch has at most {BATCH_OPS_MAX} preconditions and writes, this one has {}",
            batch.ops()
        )));
    }
    if batch.bytes() > BATCH_BYTES_MAX {
        return Err(StoreError::invalid(format!(
            "a batch has at most {BATCH_BYTES_MAX} bytes, this one has {}",
            batch.bytes()
        )));
    }
    for precondition in &batch.preconditions {
        match precondition {
            Precondition::Absent(key) | Precondition::Present(key) => validate_key(key)?,
            Precondition::Equals(key, value) => {
                validate_key(key)?;
                validate_value(value)?;
            }
            Precondition::NotAfter(_) | Precondition::NotBefore(_) => {}
        }
    }
    for write in &batch.writes {
        validate_key(write.key())?;
        if let Write::Put(_, value) = write {
            validate_value(value)?;
        }
    }
    validate_plans(batch)
}

/// What the keys of the built-in kinds' rows begin with.
pub(crate) const BUILT_IN_ROWS: [u8; 2] = [b'b', 0];

/// What the keys of the timers' names begin with.
const NAME_ROWS: [u8; 2] = [crate::rows::class::NAME, 0];

/// Refuses a batch that writes a name or a row of a built-in kind twice: two plans were made of one reading of
/// it, their guards agree, and the later write would undo the earlier one, an outcome or a count with it, and
/// leave a timer that its name does not know.
fn validate_plans(batch: &Batch) -> Result<(), StoreError> {
    if planted(Mutant::PlansOverwriteEachOther) {
        return Ok(());
    }
    // A batch has few writes, so each is compared with those before it.
    let mut written: Vec<&Key> = Vec::new();
    for write in &batch.writes {
        let key = write.key();
        if !key.starts_with(&BUILT_IN_ROWS) && !key.starts_with(&NAME_ROWS) {
            continue;
        }
        if written.contains(&key) {
            return Err(StoreError::invalid(format!(
                "two plans of a batch write the same row, {}: commit one, then plan the other",
                key.escape_ascii()
            )));
        }
        written.push(key);
    }
    Ok(())
}

/// Checks every batch of a group and returns how many at the front are sound, with the error of
/// the one behind them.
pub fn validate_group(group: &Group) -> (usize, Option<StoreError>) {
    for (index, batch) in group.batches.iter().enumerate() {
        if let Err(error) = validate_batch(batch) {
            return (index, Some(error));
        }
    }
    (group.batches.len(), None)
}

/// Checks the ranges of a scan: their number, limits, keys and cursors.
///
/// # Errors
/// `Invalid` with the figure.
pub fn validate_ranges(ranges: &[ScanRange]) -> Result<(), StoreError> {
    if ranges.len() > SCAN_RANGES_MAX {
        return Err(StoreError::invalid(format!(
            "a scan has at most {SCAN_RANGES_MAX} ranges, this one has {}",
            ranges.len()
        )));
    }
    for range in ranges {
        if range.limit == 0 {
            return Err(StoreError::invalid("a scan needs a limit of at least 1"));
        }
        if let Some(cursor) = &range.after {
            let position = cursor.position();
            if *position < range.start || *position >= range.end {
                return Err(StoreError::invalid("the cursor belongs to another range"));
            }
        }
    }
    Ok(())
}

//! Checking the guards of a batch and staging what it writes.
//!
//! A `Present(k)` with a `Delete(k)` costs one statement instead of two when the delete itself says
//! whether the row was there, and so does an `Absent(k)` with a `Put(k)`. Such a *folded* guard
//! writes before the verdict is known, which is safe in one order only:
//!
//! 1. every other guard is checked by reading; if one is lost, the folded ones before it in the
//!    list are read too (the first failure of the list decides), and nothing has been written;
//! 2. the folded inserts run; one that is lost is undone by staging the delete of those before it;
//! 3. one folded delete runs last. There is at most one: a delete cannot be undone without its
//!    value, so any further `Present` is checked by reading.
//!
//! A key that an earlier batch of the transaction has staged is decided in memory and never folded.

use bytes::Bytes;

use super::conn::SqlParam;
use super::statements as sql;
use super::transaction::Transaction;
use crate::ordered::sort_by;
use crate::store::{Batch, BatchOutcome, Key, Precondition, StoreError, Value, Write};

/// The last write of a batch to one key.
struct Effect<'b> {
    key: &'b Key,
    value: Option<&'b Value>,
    folded: bool,
}

/// A guard that is checked by the write it belongs to.
#[derive(Clone, Copy)]
struct Fold {
    precondition: usize,
    effect: usize,
}

#[derive(Default)]
struct Folds {
    inserts: Vec<Fold>,
    delete: Option<Fold>,
}

impl Folds {
    /// The folded guards, in list order.
    fn in_order(&self) -> Vec<Fold> {
        let mut all: Vec<Fold> = self.inserts.iter().copied().chain(self.delete).collect();
        sort_by(&mut all, |one, other| {
            one.precondition.cmp(&other.precondition)
        });
        all
    }
}

impl Transaction<'_> {
    /// Decides a batch and stages its writes. The inner error refuses the batch, the outer one is
    /// the connection's.
    pub(super) fn run_batch(
        &mut self,
        name: &Bytes,
        part: &mut Option<i64>,
        batch: &Batch,
    ) -> Result<Result<BatchOutcome, StoreError>, StoreError> {
        *part = self.make_sure(name, *part, batch)?;
        let full = self.is_full_for(batch)?;
        let mut effects = effects_of(batch);
        let fold_in = if full { None } else { *part };
        let (folds, lost) = self.check(*part, fold_in, batch, &mut effects)?;
        if let Some(lost) = lost {
            self.doubt(name, *part);
            return Ok(Ok(lost));
        }
        if full {
            return Ok(Err(StoreError::full(
                "the size limit is reached; delete something or raise the limit",
            )));
        }
        if let Some(id) = *part
            && let Some(lost) = self.run_folds(id, &effects, &folds)?
        {
            self.doubt(name, *part);
            return Ok(Ok(lost));
        }
        let id = match *part {
            Some(id) => id,
            None if batch.has_put() => {
                let id = self.create_partition(name)?;
                *part = Some(id);
                id
            }
            None => return Ok(Ok(BatchOutcome::Committed)),
        };
        for effect in &effects {
            self.note(name, id, effect.key, effect.value);
            if !effect.folded {
                self.staged
                    .insert((id, effect.key.clone()), effect.value.cloned());
            }
        }
        Ok(Ok(BatchOutcome::Committed))
    }

    /// Checks every guard that is not folded and, if one is lost, those folded before it.
    fn check(
        &self,
        part: Option<i64>,
        fold_in: Option<i64>,
        batch: &Batch,
        effects: &mut [Effect<'_>],
    ) -> Result<(Folds, Option<BatchOutcome>), StoreError> {
        let mut folds = Folds::default();
        let mut now_ms = None;
        for (index, precondition) in batch.preconditions.iter().enumerate() {
            if self.fold(fold_in, index, precondition, effects, &mut folds) {
                continue;
            }
            let lost = match precondition {
                Precondition::NotAfter(_) | Precondition::NotBefore(_) => {
                    let now_ms = *now_ms.get_or_insert_with(|| self.conn.now_ms());
                    out_of_time(precondition, now_ms)
                }
                guard => self.check_row(part, index, guard)?,
            };
            if lost.is_some() {
                for fold in folds.in_order() {
                    let Some(guard) = batch.preconditions.get(fold.precondition) else {
                        continue;
                    };
                    if let Some(earlier) = self.check_row(part, fold.precondition, guard)? {
                        return Ok((folds, Some(earlier)));
                    }
                }
                return Ok((folds, lost));
            }
        }
        Ok((folds, None))
    }

    /// Folds a guard into the write of its key, if that is safe.
    fn fold(
        &self,
        fold_in: Option<i64>,
        index: usize,
        guard: &Precondition,
        effects: &mut [Effect<'_>],
        folds: &mut Folds,
    ) -> bool {
        let (Some(part), Precondition::Absent(key) | Precondition::Present(key)) = (fold_in, guard)
        else {
            return false;
        };
        let wants_put = matches!(guard, Precondition::Absent(_));
        if !wants_put && folds.delete.is_some() {
            return false;
        }
        let Ok(at) = effects.binary_search_by(|effect| effect.key.cmp(key)) else {
            return false;
        };
        let Some(effect) = effects.get_mut(at) else {
            return false;
        };
        if effect.folded
            || effect.value.is_some() != wants_put
            || self.staged_value(part, key).is_some()
        {
            return false;
        }
        effect.folded = true;
        let fold = Fold {
            precondition: index,
            effect: at,
        };
        if wants_put {
            folds.inserts.push(fold);
        } else {
            folds.delete = Some(fold);
        }
        true
    }

    /// Runs the folded writes; a loss leaves nothing written.
    fn run_folds(
        &mut self,
        part: i64,
        effects: &[Effect<'_>],
        folds: &Folds,
    ) -> Result<Option<BatchOutcome>, StoreError> {
        for (done, fold) in folds.inserts.iter().enumerate() {
            let Some(Effect {
                key,
                value: Some(value),
                ..
            }) = effects.get(fold.effect)
            else {
                continue;
            };
            if self.write(&sql::INSERT, part, key, value)? == 1 {
                continue;
            }
            let mut index = fold.precondition;
            let mut observed = self.read(Some(part), key)?;
            if let Some(delete) = folds.delete
                && delete.precondition < index
                && let Some(effect) = effects.get(delete.effect)
                && !self.present(Some(part), effect.key)?
            {
                (index, observed) = (delete.precondition, None);
            }
            self.undo(part, effects, folds.inserts.iter().take(done));
            return Ok(Some(BatchOutcome::PreconditionFailed { index, observed }));
        }
        if let Some(fold) = folds.delete
            && let Some(effect) = effects.get(fold.effect)
        {
            let row = [SqlParam::Int(part), SqlParam::Blob(effect.key)];
            if self.conn.execute(sql::ROW_DELETE, &row)? == 0 {
                self.undo(part, effects, folds.inserts.iter());
                return Ok(Some(BatchOutcome::PreconditionFailed {
                    index: fold.precondition,
                    observed: None,
                }));
            }
        }
        Ok(None)
    }

    /// Takes folded inserts back: each key was absent, so its delete is staged.
    fn undo<'f>(
        &mut self,
        part: i64,
        effects: &[Effect<'_>],
        inserts: impl Iterator<Item = &'f Fold>,
    ) {
        for fold in inserts {
            if let Some(effect) = effects.get(fold.effect) {
                self.staged.insert((part, effect.key.clone()), None);
            }
        }
    }

    /// Checks a guard on a row by reading it.
    fn check_row(
        &self,
        part: Option<i64>,
        index: usize,
        guard: &Precondition,
    ) -> Result<Option<BatchOutcome>, StoreError> {
        let (holds, observed) = match guard {
            Precondition::Absent(key) => {
                let found = self.read(part, key)?;
                (found.is_none(), found)
            }
            Precondition::Present(key) => (self.present(part, key)?, None),
            Precondition::Equals(key, value) => {
                let found = self.read(part, key)?;
                (found.as_ref() == Some(value), found)
            }
            Precondition::NotAfter(_) | Precondition::NotBefore(_) => (true, None),
        };
        Ok((!holds).then_some(BatchOutcome::PreconditionFailed { index, observed }))
    }

    /// Whether the batch puts something for which there is no room.
    fn is_full_for(&mut self, batch: &Batch) -> Result<bool, StoreError> {
        let Some(limit) = self.writer.size_limit else {
            return Ok(false);
        };
        if batch.uses_reserve || !batch.has_put() {
            return Ok(false);
        }
        let size_bytes = match self.size_bytes {
            Some(size_bytes) => size_bytes,
            None => *self.size_bytes.insert(self.conn.size_bytes()?),
        };
        Ok(size_bytes >= limit.soft_limit_bytes())
    }
}

/// The last write to each key, ordered by key.
fn effects_of(batch: &Batch) -> Vec<Effect<'_>> {
    let mut effects: Vec<Effect<'_>> = batch
        .writes
        .iter()
        .rev()
        .map(|write| match write {
            Write::Put(key, value) => Effect {
                key,
                value: Some(value),
                folded: false,
            },
            Write::Delete(key) => Effect {
                key,
                value: None,
                folded: false,
            },
        })
        .collect();
    // Stable, so the last write to a key, which is now in front, is the one that dedup keeps.
    sort_by(&mut effects, |one, other| one.key.cmp(other.key));
    effects.dedup_by(|later, kept| later.key == kept.key);
    effects
}

/// What a time bound comes to; on a clock before 1970 every bound fails.
fn out_of_time(bound: &Precondition, now_ms: i64) -> Option<BatchOutcome> {
    let now = u64::try_from(now_ms);
    match bound {
        Precondition::NotAfter(until_ms) => {
            let backend_now_ms = now.unwrap_or(u64::MAX);
            (now.is_err() || backend_now_ms > *until_ms)
                .then_some(BatchOutcome::DeadlinePassed { backend_now_ms })
        }
        Precondition::NotBefore(from_ms) => {
            let backend_now_ms = now.unwrap_or(0);
            (now.is_err() || backend_now_ms < *from_ms)
                .then_some(BatchOutcome::TooEarly { backend_now_ms })
        }
        _ => None,
    }
}

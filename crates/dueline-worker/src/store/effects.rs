//! Effects of the host's own: work on the object's database that commits with a batch.

use bytes::Bytes;
use dueline::rows::{class, class_start, is_of_class};
use dueline::sql::SqlConn;
use dueline::store::{Batch, Group, GroupOutcome, Key, Partition, StoreError, Write};

use super::ObjectStore;
use super::commit::Stays;
use super::state::State;

/// A write that stands for work of the host's in the batch that holds it: when the batch's guards have
/// held, the store calls [`ObjectStorage::effect`](crate::ObjectStorage::effect) with this number, inside
/// the batch's transaction. A handler adds it to the batch it returns, and so its effects on tables that
/// the store knows nothing of happen exactly once, with the timer's removal.
///
/// It counts as one of the batch's operations. Several marks of a batch are called in their order.
pub fn effect_mark(number: u64) -> Write {
    let mut key = class_start(class::EFFECT).to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    Write::Delete(Bytes::from(key))
}

fn number_of(key: &Key) -> Option<u64> {
    if !is_of_class(key, class::EFFECT) {
        return None;
    }
    let bytes = key.get(2..)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// The marks of each batch of a group, taken out of it; none if no batch holds one.
pub(super) fn take_marks(group: &mut Group) -> Vec<Vec<u64>> {
    let is_marked = |batch: &Batch| {
        batch
            .writes
            .iter()
            .any(|write| number_of(write.key()).is_some())
    };
    if !group.batches.iter().any(is_marked) {
        return Vec::new();
    }
    let taken = group.batches.iter_mut().map(|batch| {
        let mut numbers = Vec::new();
        batch.writes.retain(|write| match number_of(write.key()) {
            Some(number) => {
                numbers.push(number);
                false
            }
            None => true,
        });
        numbers
    });
    taken.collect()
}

/// A batch whose effect failed, and what the host said.
#[derive(Debug)]
pub(super) struct FailedEffect {
    pub(super) index: usize,
    pub(super) error: StoreError,
}

impl ObjectStore {
    /// Does the effects of one batch.
    pub(super) fn do_effects(
        &self,
        conn: &dyn SqlConn,
        marks: &[Vec<u64>],
        index: usize,
    ) -> Result<(), FailedEffect> {
        for number in marks.get(index).into_iter().flatten() {
            self.storage
                .effect(*number, conn)
                .map_err(|text| FailedEffect {
                    index,
                    error: StoreError::invalid(text),
                })?;
        }
        Ok(())
    }

    /// Behind a rollback for a failed effect: the batches before it, without it and what came behind.
    pub(super) fn commit_before(
        &self,
        state: &mut State,
        partition: &Partition,
        mut group: Group,
        marks: &[Vec<u64>],
        failed: FailedEffect,
    ) -> GroupOutcome {
        group.batches.truncate(failed.index);
        group.settles.clear();
        if group.batches.is_empty() {
            return GroupOutcome::stopped(failed.error);
        }
        let mut done = self.commit(state, partition, &group, marks, false, Stays::Front);
        if done.stopped_by.is_none() && done.committed() == group.batches.len() {
            done.stopped_by = Some(failed.error);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_out_in_their_order_and_everything_else_stays() {
        let mut marked = Batch::new().put("a", "1");
        marked.writes.push(effect_mark(7));
        marked = marked.delete("b");
        marked.writes.push(effect_mark(u64::MAX));
        let plain = Batch::new().delete("e");
        let mut group = Group::from(vec![plain.clone(), marked]);
        assert_eq!(take_marks(&mut group), [vec![], vec![7, u64::MAX]]);
        assert_eq!(
            group.batches,
            [plain.clone(), Batch::new().put("a", "1").delete("b")]
        );
        let mut unmarked = Group::from(vec![plain]);
        assert!(take_marks(&mut unmarked).is_empty());
    }
}

use super::state::State;
use super::transaction::Transaction;
use super::{BackendNow, Fault, MemoryStore};
use crate::future::BoxFuture;
use crate::mutants::{Mutant, planted};
use crate::store::{
    Batch, BatchOutcome, Capabilities, Group, GroupOutcome, NamespaceStore, Partition,
    PartitionStats, StoreError, Wake, WakeSettle, validate_batch, validate_group,
};

impl MemoryStore {
    /// Checks and writes one valid batch.
    fn commit_batch(
        &self,
        state: &mut State,
        partition: &Partition,
        batch: Batch,
    ) -> Result<BatchOutcome, StoreError> {
        let now = self.now();
        let bound = self
            .capacity
            .filter(|_| batch.has_put())
            .map(|capacity| capacity.bound(batch.uses_reserve));
        let mut transaction = Transaction::begin(state, partition);
        if let Some(failure) = transaction.first_failure(&batch.preconditions, now) {
            return Ok(failure);
        }
        let torn = usize::from(planted(Mutant::BatchIsTorn));
        let written = batch.writes.len().saturating_sub(torn);
        for write in batch.writes.into_iter().take(written) {
            transaction.write(write);
        }
        if bound.is_some_and(|bound| transaction.bytes() > bound) {
            return Err(StoreError::full(
                "the capacity limit of this memory store is reached; delete rows or raise it",
            ));
        }
        transaction.commit(now);
        Ok(BatchOutcome::Committed)
    }

    fn commit_group(&self, state: &mut State, partition: &Partition, group: Group) -> GroupOutcome {
        let (sound, mut invalid) = validate_group(&group);
        let mut done = GroupOutcome::default();
        for batch in group.batches.into_iter().take(sound) {
            match self.commit_batch(state, partition, batch) {
                Ok(outcome) => {
                    let committed = outcome.is_committed();
                    done.outcomes.push(outcome);
                    if !committed && !planted(Mutant::GroupGoesOnAfterLoss) {
                        invalid = None;
                        break;
                    }
                }
                Err(error) => {
                    done.stopped_by = Some(error);
                    return done;
                }
            }
        }
        done.stopped_by = invalid;
        if done.stopped_by.is_none() {
            let now = self.now();
            done.next_wakes_ms = group
                .settles
                .into_iter()
                .map(|settle| settle_lane(state, partition, settle, now))
                .collect();
        }
        done
    }
}

/// Removes the wakes that were served and sets the lane's next.
fn settle_lane(
    state: &mut State,
    partition: &Partition,
    settle: WakeSettle,
    now: BackendNow,
) -> Option<u64> {
    let kind = settle.kind;
    let mut served = Wake {
        at_ms: 0,
        partition: partition.clone(),
        kind,
    };
    for at_ms in settle.served_ms {
        served.at_ms = at_ms;
        state.wakes.remove(&served);
    }
    if planted(Mutant::SettleForgetsWake) {
        return None;
    }
    #[cfg(dueline_mutants)]
    if planted(Mutant::SettleFromEarlierRead) {
        let next_ms = state.head_seen_ms(partition, kind, now.or_zero())?;
        state.wakes.arm(partition, kind, next_ms);
        return Some(next_ms);
    }
    let late_ms = if planted(Mutant::SettleSetsWakeLate) {
        1_000
    } else {
        0
    };
    let next_ms = state.lane_wants_ms(partition, kind, now.or_zero())? + late_ms;
    if planted(Mutant::FullLaneDropsWake) && next_ms <= now.or_zero() {
        return None;
    }
    state.wakes.arm(partition, kind, next_ms);
    Some(next_ms)
}

impl NamespaceStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            wakes: true,
            shared: false,
        }
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            validate_batch(&batch)?;
            let mut state = self.lock();
            let fault = state.fault.take();
            if let Some(Fault::Before(kind)) = fault {
                return Err(Fault::error_before(kind));
            }
            let outcome = self.commit_batch(&mut state, partition, batch)?;
            match fault {
                Some(_) => Err(Fault::error_after()),
                None => Ok(outcome),
            }
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(async move {
            if let (0, Some(error)) = validate_group(&group) {
                return GroupOutcome::stopped(error);
            }
            let mut state = self.lock();
            let fault = state.fault.take();
            if let Some(Fault::Before(kind)) = fault {
                return GroupOutcome::stopped(Fault::error_before(kind));
            }
            let done = self.commit_group(&mut state, partition, group);
            match fault {
                Some(_) => GroupOutcome::stopped(Fault::error_after()),
                None => done,
            }
        })
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        Box::pin(async move {
            let state = self.lock();
            let rows = state
                .partition(partition)
                .map_or(0, |rows| rows.len() as u64);
            Ok(PartitionStats {
                rows,
                bytes: state.partition_bytes(partition),
            })
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { Ok(self.now().or_zero()) })
    }
}

use dueline::store::{Batch, BatchOutcome, NamespaceStore, Partition};

use crate::block_on;

/// Applies a batch that the test takes for granted.
///
/// # Panics
/// Unless it commits, with what came instead.
#[track_caller]
pub fn commit(store: &dyn NamespaceStore, partition: &Partition, batch: Batch) {
    let answer = block_on(store.apply(partition, batch));
    assert!(
        matches!(answer, Ok(BatchOutcome::Committed)),
        "the batch should have committed in {partition}, but: {answer:?}"
    );
}

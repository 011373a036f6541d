//! The way of a call to the writer and back.

use std::future::{Future, poll_fn};
use std::task::Poll;

use dueline::MaybeSend;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Group, GroupOutcome, Partition, StoreError, validate_batch,
};

use crate::error::closed;
use crate::inbox::{Inbox, Push, Refused};
use crate::oneshot::oneshot;
use crate::shared::{AuditWork, GroupWork, Shared, Work};

/// Queues an item, waiting for room; gives it back if the queue is closed.
pub(crate) fn push<T: MaybeSend>(
    inbox: &Inbox<T>,
    item: T,
    how: Push,
) -> impl Future<Output = Result<(), T>> + MaybeSend {
    let mut item = Some(item);
    poll_fn(move |context| {
        let Some(queued) = item.take() else {
            return Poll::Ready(Ok(()));
        };
        match inbox.push(queued, how, context.waker()) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(Refused::Closed(back)) => Poll::Ready(Err(back)),
            Err(Refused::Full(back)) => {
                item = Some(back);
                Poll::Pending
            }
        }
    })
}

/// Sends one batch through the writer.
pub(crate) async fn send_batch(
    shared: &Shared,
    partition: &Partition,
    batch: Batch,
    how: Push,
) -> Result<BatchOutcome, StoreError> {
    validate_batch(&batch)?;
    let mut done = send_group(shared, partition, Group::from(vec![batch]), how).await;
    match (done.outcomes.pop(), done.stopped_by) {
        (Some(outcome), _) => Ok(outcome),
        (None, Some(error)) => Err(error),
        (None, None) => Err(lost()),
    }
}

/// Sends a group through the writer.
pub(crate) async fn send_group(
    shared: &Shared,
    partition: &Partition,
    group: Group,
    how: Push,
) -> GroupOutcome {
    if group.batches.is_empty() && group.settles.is_empty() {
        return GroupOutcome::default();
    }
    if let Err(error) = shared.gate.check() {
        return GroupOutcome::stopped(error);
    }
    let (answer, awaited) = oneshot();
    let work = Work::Group(GroupWork {
        partition: partition.clone(),
        group,
        answer,
    });
    if push(&shared.writes, work, how).await.is_err() {
        return GroupOutcome::stopped(closed());
    }
    awaited
        .await
        .unwrap_or_else(|| GroupOutcome::stopped(lost()))
}

/// Has the writer audit wakes.
pub(crate) async fn send_audit(
    shared: &Shared,
    after: Option<&Partition>,
    limit: usize,
    how: Push,
) -> Result<AuditPage, StoreError> {
    if limit == 0 {
        return Err(StoreError::invalid("an audit needs a limit of at least 1"));
    }
    shared.gate.check()?;
    let (answer, awaited) = oneshot();
    let work = Work::Audit(AuditWork {
        after: after.cloned(),
        limit,
        answer,
    });
    if push(&shared.writes, work, how).await.is_err() {
        return Err(closed());
    }
    awaited.await.unwrap_or_else(|| Err(lost()))
}

/// The writer died with the request in its hands.
fn lost() -> StoreError {
    StoreError::unknown("the store ended while the batch was with it; read again before deciding")
}

//! What is running now, so that a pause can wait for what began before it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::TimerKind;
use crate::ordered::OrderedMap;
use crate::store::Partition;

/// Ticks and calls under way in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity {
    shared: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    running: OrderedMap<u64, (Partition, Option<TimerKind>)>,
    waiting: Vec<Waker>,
}

/// One tick (of all kinds) or call (of one); ends when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    activity: Activity,
    id: u64,
}

impl Activity {
    /// Notes that a tick of the partition, or a call of one kind, begins.
    pub(crate) fn begin(&self, partition: &Partition, kind: Option<TimerKind>) -> Running {
        let mut table = self.lock();
        let id = table.next_id;
        table.next_id = id.saturating_add(1);
        table.running.insert(id, (partition.clone(), kind));
        Running {
            activity: self.clone(),
            id,
        }
    }

    /// Waits until nothing of this lane that had begun before this call is running.
    pub(crate) async fn drained(&self, partition: &Partition, kind: TimerKind) {
        let bound = self.lock().next_id;
        poll_fn(|context| {
            let mut table = self.lock();
            let busy = table.running.range(..bound).any(|(_, (of, running))| {
                of == partition && running.is_none_or(|running| running == kind)
            });
            if !busy {
                return Poll::Ready(());
            }
            if !table
                .waiting
                .iter()
                .any(|waker| waker.will_wake(context.waker()))
            {
                table.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let waiting = {
            let mut table = self.activity.lock();
            table.running.remove(&self.id);
            std::mem::take(&mut table.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }
}

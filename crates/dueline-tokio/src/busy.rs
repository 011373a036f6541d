//! Waiting for everything that runs to end.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// A count of what runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    running: usize,
    waiting: Vec<Waker>,
}

/// One thing that runs; ends when dropped.
#[derive(Debug)]
pub(crate) struct BusyToken {
    busy: Busy,
}

impl Busy {
    pub(crate) fn begin(&self) -> BusyToken {
        self.lock().running += 1;
        BusyToken { busy: self.clone() }
    }

    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        poll_fn(|context| {
            let mut table = self.lock();
            if table.running == 0 {
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
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BusyToken {
    fn drop(&mut self) {
        let woken = {
            let mut table = self.busy.lock();
            table.running = table.running.saturating_sub(1);
            if table.running > 0 {
                return;
            }
            std::mem::take(&mut table.waiting)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

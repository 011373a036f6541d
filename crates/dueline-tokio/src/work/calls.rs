use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline::timers::{Claim, ClaimedCall, FinishedCall, TimerKind};

use crate::busy::Busy;
use crate::task_host::{Abort, TaskHost};

/// The detached calls under way, each a task of the async runtime.
pub(crate) struct Calls {
    runtime: Arc<dyn TaskHost>,
    busy: Busy,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    calls: BTreeMap<u64, Call>,
    /// Claims that are out: calls under way, and ended ones that are not settled.
    per_kind: BTreeMap<TimerKind, u32>,
    closed: bool,
}

struct Call {
    claim: Claim,
    abort: Option<Abort>,
}

/// What becomes of a claim whose call is over.
pub(crate) enum CallEnd {
    /// It ended: settle it.
    Finished(Box<FinishedCall>),
    /// It was cut, by the end of the async runtime or of the driver: give the claim back.
    Cut(Claim),
}

impl Calls {
    pub(crate) fn new(runtime: Arc<dyn TaskHost>, busy: Busy) -> Self {
        Self {
            runtime,
            busy,
            table: Mutex::default(),
        }
    }

    /// Runs a call and hands its end to `ended`; at once and unrun if the driver stops.
    pub(crate) fn run<F>(self: &Arc<Self>, call: ClaimedCall, ended: F)
    where
        F: Fn(CallEnd) + Send + 'static,
    {
        let (claim, kind) = (call.claim().clone(), call.kind());
        let Some(id) = self.note(&claim, kind) else {
            drop(call);
            ended(CallEnd::Cut(claim));
            return;
        };
        let mut watch = CallWatch {
            calls: Arc::clone(self),
            id,
            ended: Some(ended),
        };
        let busy = self.busy.begin();
        let abort = self.runtime.spawn(Box::pin(async move {
            let finished = call.run().await;
            watch.finish(finished);
            drop(busy);
        }));
        if let Some(abort) = self.keep(id, abort) {
            // It has ended already, or was cut before its task was known.
            abort();
        }
    }

    /// Notes that a claim is out; `None` if its call must not begin.
    fn note(&self, claim: &Claim, kind: TimerKind) -> Option<u64> {
        let mut table = self.lock();
        *table.per_kind.entry(kind).or_insert(0) += 1;
        if table.closed {
            return None;
        }
        let id = table.next_id;
        table.next_id += 1;
        let call = Call {
            claim: claim.clone(),
            abort: None,
        };
        table.calls.insert(id, call);
        Some(id)
    }

    /// Keeps the task of a call that is under way; hands it back if it is not.
    fn keep(&self, id: u64, abort: Abort) -> Option<Abort> {
        match self.lock().calls.get_mut(&id) {
            Some(call) => {
                call.abort = Some(abort);
                None
            }
            None => Some(abort),
        }
    }

    fn remove(&self, id: u64) -> Option<Call> {
        self.lock().calls.remove(&id)
    }

    /// Notes that the claim of a call is settled or given back.
    pub(crate) fn settled(&self, kind: TimerKind) {
        if let Some(count) = self.lock().per_kind.get_mut(&kind) {
            *count = count.saturating_sub(1);
        }
    }

    /// How many claims of this kind are out.
    pub(crate) fn of_kind(&self, kind: TimerKind) -> u32 {
        self.lock().per_kind.get(&kind).copied().unwrap_or(0)
    }

    /// How many claims are out, over all kinds.
    pub(crate) fn outstanding(&self) -> u32 {
        self.lock().per_kind.values().sum()
    }

    /// How many calls are under way.
    pub(crate) fn running(&self) -> usize {
        self.lock().calls.len()
    }

    /// Lets no further call begin.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// Drops the calls under way and returns their claims.
    pub(crate) fn cut(&self) -> Vec<Claim> {
        let calls = {
            let mut table = self.lock();
            table.closed = true;
            std::mem::take(&mut table.calls)
        };
        calls
            .into_values()
            .map(|call| {
                if let Some(abort) = call.abort {
                    abort();
                }
                call.claim
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees to it that the end of a call is handled once, however its task ends.
struct CallWatch<F: Fn(CallEnd)> {
    calls: Arc<Calls>,
    id: u64,
    ended: Option<F>,
}

impl<F: Fn(CallEnd)> CallWatch<F> {
    fn finish(&mut self, finished: FinishedCall) {
        // Whoever cut the call has its claim; what it brought back must not be settled then.
        let ours = self.calls.remove(self.id).is_some();
        let ended = self.ended.take();
        if let (true, Some(ended)) = (ours, ended) {
            ended(CallEnd::Finished(Box::new(finished)));
        }
    }
}

impl<F: Fn(CallEnd)> Drop for CallWatch<F> {
    fn drop(&mut self) {
        let Some(ended) = self.ended.take() else {
            return;
        };
        if let Some(call) = self.calls.remove(self.id) {
            ended(CallEnd::Cut(call.claim));
        }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls")
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}

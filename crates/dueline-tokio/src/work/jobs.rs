use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dueline::store::{AuditPage, NamespaceStore, Partition, StoreError, WakeStore};
use dueline::timers::{
    Claim, Counts, FinishedCall, RunReport, TickRequest, TimerError, TimerKind, Timers,
};

use super::calls::CallEnd;
use crate::plan::NextTurn;
use crate::shared::Shared;

/// What the scheduler learns from the threads.
#[derive(Debug)]
pub(crate) enum Event {
    /// The turn of a partition is over; `None` if it panicked or was dropped.
    Ticked(Partition, Option<Box<TickDone>>),
    /// A call is settled; `None` if that panicked or was dropped.
    Settled(Option<Box<Counts>>),
    /// The claim of a call that was cut is given back, or could not be: counted by the job itself.
    Released,
    /// A step of the audit is over; `None` if it panicked or was dropped.
    Audited(Option<Result<AuditPage, StoreError>>),
    /// A step of the walk that brings back undecodable timers is over.
    Requeued(Option<Result<RequeueStep, TimerError>>),
}

/// What a step of that walk did.
#[derive(Debug)]
pub(crate) struct RequeueStep {
    pub(crate) requeued: u64,
    /// Where to go on; `None` at the end.
    pub(crate) next: Option<Partition>,
}

/// What a tick did.
#[derive(Debug)]
pub(crate) struct TickDone {
    pub(crate) report: RunReport,
    pub(crate) next_wakes: Vec<(TimerKind, Option<u64>)>,
}

/// Tells the scheduler how a job ended when it is dropped, so also if it was dropped half-way.
struct Report {
    shared: Arc<Shared>,
    event: Option<Event>,
    /// The kind of the claim that ends with the job.
    claimed: Option<TimerKind>,
}

impl Report {
    fn new(shared: &Arc<Shared>, claimed: Option<TimerKind>, if_dropped: Event) -> Self {
        Self {
            shared: Arc::clone(shared),
            event: Some(if_dropped),
            claimed,
        }
    }

    fn done(mut self, event: Event) {
        self.event = Some(event);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // Told before it is taken off the count: who finds nothing outstanding finds what was told.
        if let Some(event) = self.event.take() {
            self.shared.inbox.push(event);
        }
        if let Some(kind) = self.claimed {
            self.shared.calls.settled(kind);
            self.shared.inbox.nudge();
        }
    }
}

/// When a thread began a tick, in nanoseconds of the monotonic clock; 0 before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Began(Arc<AtomicU64>);

impl Began {
    fn set(&self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanos.max(1), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }
}

/// One turn of a partition.
pub(crate) fn tick(
    shared: Arc<Shared>,
    turn: NextTurn,
    began: Began,
) -> impl Future<Output = ()> + Send + 'static {
    let report = Report::new(&shared, None, Event::Ticked(turn.partition.clone(), None));
    async move {
        let began_at = shared.engine.runtime().monotonic();
        began.set(began_at);
        let mut state = shared.engine.start_tick(shared.budget);
        let request = TickRequest {
            partition: &turn.partition,
            wakes: Some(&turn.wakes),
            cautious_until_ms: shared.cautious_until_ms,
        };
        let tick = shared.engine.tick(request, &mut state).await;
        shared.host.ticked(&turn.partition, began_at, &tick.report);
        for call in tick.calls {
            let of_call = Arc::clone(&shared);
            shared.calls.run(call, move |end| end_call(&of_call, end));
        }
        let done = TickDone {
            report: tick.report,
            next_wakes: tick.next_wakes,
        };
        report.done(Event::Ticked(turn.partition, Some(Box::new(done))));
    }
}

fn end_call(shared: &Arc<Shared>, end: CallEnd) {
    let of_job = Arc::clone(shared);
    match end {
        CallEnd::Finished(finished) => shared.pool.push_urgent(settle(of_job, *finished)),
        CallEnd::Cut(claim) => shared.pool.push_urgent(release(of_job, claim)),
    }
}

/// The settling of a call that has ended.
fn settle(
    shared: Arc<Shared>,
    finished: FinishedCall,
) -> impl Future<Output = ()> + Send + 'static {
    let kind = finished.claim().timer().kind();
    let report = Report::new(&shared, Some(kind), Event::Settled(None));
    async move {
        let counts = shared.engine.settle(finished).await;
        report.done(Event::Settled(Some(Box::new(counts))));
    }
}

/// Gives back the claim of a call that was cut.
pub(crate) fn release(
    shared: Arc<Shared>,
    claim: Claim,
) -> impl Future<Output = ()> + Send + 'static {
    let report = Report::new(&shared, Some(claim.timer().kind()), Event::Released);
    async move {
        match shared.engine.release(&claim).await {
            // A timer that is no longer as claimed was changed by its owner: nothing is owed.
            Ok(_) => {
                shared.released.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                shared.unreleased.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    partition = %claim.partition(),
                    kind = claim.timer().kind().0,
                    claim_ends_at_ms = claim.ends_at_ms(),
                    %error,
                    "a cut call could not be given back; its timer runs again when the claim ends",
                );
            }
        }
        report.done(Event::Released);
    }
}

/// One step of the audit.
pub(crate) fn audit(
    shared: Arc<Shared>,
    after: Option<Partition>,
    partitions_max: usize,
) -> impl Future<Output = ()> + Send + 'static {
    let report = Report::new(&shared, None, Event::Audited(None));
    async move {
        let page = shared
            .store
            .audit_wakes(after.as_ref(), partitions_max)
            .await;
        report.done(Event::Audited(Some(page)));
    }
}

/// Dead timers looked at together.
const DEAD_PAGE: usize = 64;

/// One step of the walk that brings back what earlier codecs could not decode.
pub(crate) fn requeue(
    shared: Arc<Shared>,
    kinds: Vec<(TimerKind, u16)>,
    after: Option<Partition>,
    partitions_max: usize,
) -> impl Future<Output = ()> + Send + 'static {
    let report = Report::new(&shared, None, Event::Requeued(None));
    async move {
        let step = requeue_step(&shared, &kinds, after.as_ref(), partitions_max).await;
        report.done(Event::Requeued(Some(step)));
    }
}

async fn requeue_step(
    shared: &Shared,
    kinds: &[(TimerKind, u16)],
    after: Option<&Partition>,
    partitions_max: usize,
) -> Result<RequeueStep, TimerError> {
    let store: Arc<dyn NamespaceStore> = Arc::<dyn WakeStore>::clone(&shared.store);
    let timers = Timers::new(store, shared.engine.runtime().clone());
    let page = shared.store.partitions(after, partitions_max).await?;
    let mut requeued = 0;
    for partition in &page.partitions {
        for (kind, version) in kinds {
            let mut behind = None;
            loop {
                let done = timers
                    .requeue_undecodable(partition, *kind, *version, behind.as_ref(), DEAD_PAGE)
                    .await?;
                requeued += done.requeued.len() as u64;
                behind = done.next;
                if behind.is_none() {
                    break;
                }
            }
        }
    }
    Ok(RequeueStep {
        requeued,
        next: page.next,
    })
}

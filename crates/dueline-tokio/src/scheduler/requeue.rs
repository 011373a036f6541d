use std::sync::Arc;
use std::time::Duration;

use dueline::store::Partition;
use dueline::timers::{Registry, TimerError, TimerKind};

use super::Scheduler;
use crate::plan::refused_for;
use crate::work::{self, RequeueStep};

/// How long one step stands for, and how many partitions it looks at.
const STEP: Duration = Duration::from_secs(1);
const PARTITIONS_PER_STEP: usize = 1_000;

/// One walk after the start: timers that an earlier codec could not decode live again.
#[derive(Debug)]
pub(super) struct RequeueWalk {
    kinds: Vec<(TimerKind, u16)>,
    /// When the next step is to start; `None` when the walk is over or a step runs.
    next_step: Option<Duration>,
    after: Option<Partition>,
    refused: u32,
}

impl RequeueWalk {
    pub(super) fn new(registry: &Registry) -> Self {
        let kinds: Vec<_> = registry
            .iter()
            .map(|(kind, registration)| (kind, registration.codec()))
            .filter(|(_, version)| *version > 0)
            .collect();
        Self {
            next_step: (!kinds.is_empty()).then_some(Duration::ZERO),
            kinds,
            after: None,
            refused: 0,
        }
    }

    /// When the next step is to start, by the monotonic clock.
    pub(super) fn next(&self) -> Option<Duration> {
        self.next_step
    }
}

impl Scheduler {
    /// Starts a step of the walk when it is time.
    pub(super) fn step_requeue(&mut self, now: Duration) {
        if self
            .requeue
            .next_step
            .is_none_or(|next_step| now < next_step)
        {
            return;
        }
        self.requeue.next_step = None;
        self.shared.pool.push_job(work::requeue(
            Arc::clone(&self.shared),
            self.requeue.kinds.clone(),
            self.requeue.after.clone(),
            PARTITIONS_PER_STEP,
        ));
    }

    /// Takes note of a step that is over.
    pub(super) fn requeued(
        &mut self,
        step: Option<Result<RequeueStep, TimerError>>,
        now: Duration,
    ) {
        let step = match step {
            Some(Ok(step)) => step,
            Some(Err(error)) => {
                self.requeue.refused = self.requeue.refused.saturating_add(1);
                let again = now.saturating_add(refused_for(self.requeue.refused));
                self.requeue.next_step = Some(again);
                tracing::warn!(%error, "timers that are decodable again could not all be requeued");
                return;
            }
            None => return,
        };
        self.requeue.refused = 0;
        if step.requeued > 0 {
            self.status.requeued += step.requeued;
            tracing::info!(
                timers = step.requeued,
                "timers that an earlier codec could not decode are pending again",
            );
        }
        self.requeue.next_step = step.next.is_some().then(|| now.saturating_add(STEP));
        self.requeue.after = step.next;
    }
}

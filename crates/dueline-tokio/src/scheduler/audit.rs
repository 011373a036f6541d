use std::sync::Arc;
use std::time::Duration;

use dueline::store::{AuditPage, Partition, StoreError};

use super::Scheduler;
use crate::plan::refused_for;
use crate::shared::AuditPace;
use crate::work;

/// How long one step of a walk stands for.
const STEP: Duration = Duration::from_secs(1);

/// Where the audit stands.
#[derive(Debug)]
pub(super) struct AuditWalk {
    pace: Option<AuditPace>,
    next_step: Duration,
    after: Option<Partition>,
    running: bool,
    refused: u32,
}

impl AuditWalk {
    pub(super) fn new(pace: Option<AuditPace>) -> Self {
        Self {
            pace,
            next_step: Duration::ZERO,
            after: None,
            running: false,
            refused: 0,
        }
    }

    /// When the next step is to start, by the monotonic clock.
    pub(super) fn next(&self) -> Option<Duration> {
        (self.pace.is_some() && !self.running).then_some(self.next_step)
    }
}

impl Scheduler {
    /// Starts a step of the audit when it is time.
    pub(super) fn step_audit(&mut self, now: Duration) {
        let Some(pace) = self.audit.pace else { return };
        if self.audit.running || now < self.audit.next_step {
            return;
        }
        self.audit.running = true;
        self.audit.next_step = now.saturating_add(STEP);
        let shared = Arc::clone(&self.shared);
        let after = self.audit.after.clone();
        self.shared
            .pool
            .push_job(work::audit(shared, after, pace.partitions_per_second));
    }

    /// Takes note of a step that is over.
    pub(super) fn audited(&mut self, page: Option<Result<AuditPage, StoreError>>, now: Duration) {
        self.audit.running = false;
        let Some(pace) = self.audit.pace else { return };
        let page = match page {
            Some(Ok(page)) => page,
            Some(Err(error)) => {
                self.audit.refused = self.audit.refused.saturating_add(1);
                let delay = refused_for(self.audit.refused);
                self.audit.next_step = now.saturating_add(delay);
                tracing::warn!(%error, "the store refused a step of the audit of its wakes");
                return;
            }
            None => {
                self.audit.next_step = now.saturating_add(pace.pause.max(STEP));
                return;
            }
        };
        self.audit.refused = 0;
        for repair in &page.repairs {
            self.status.wakes_repaired += 1;
            tracing::error!(
                partition = %repair.partition,
                kind = repair.kind.0,
                wake_at_ms = repair.at_ms,
                "a lane had no wake in time and has been given one: this is a bug of the store, \
                 please report it",
            );
        }
        let repaired = page.repairs.iter();
        self.shared
            .looks
            .lower(repaired.map(|repair| (repair.kind, repair.at_ms)));
        self.audit.after = page.next;
        if self.audit.after.is_none() {
            self.status.audits_completed += 1;
            self.audit.next_step = now.saturating_add(pace.pause);
        }
    }
}

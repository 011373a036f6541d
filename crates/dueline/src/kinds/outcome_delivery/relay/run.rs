//! One run of an outbox with a relay: target by target, each in order.

use std::time::Duration;

use super::Relay;
use super::groups::{Group, LookEnd, look};
use super::target::Target;
use crate::kinds::outcome_delivery::progress::{BLOCKED_MAX, Progress};
use crate::kinds::outcome_delivery::run::{Next, Ran};
use crate::runtime::Runtime;
use crate::store::{Partition, StoreError};
use crate::timers::{DueTimer, TimerCtx};

pub(in super::super) struct RelayRun<'a> {
    ctx: &'a TimerCtx<'a>,
    timer: &'a DueTimer,
    runtime: &'a Runtime,
    relay: &'a Relay,
    ran: Ran,
    started: Duration,
    /// The first outcome that was looked at and not tried.
    first_untried: Option<u64>,
    /// Whether more targets have failed than a pass can leave out.
    is_overflown: bool,
    /// Whether it goes on behind the head.
    is_resumed: bool,
}

impl<'a> RelayRun<'a> {
    pub(in super::super) fn new(
        (ctx, timer): (&'a TimerCtx<'a>, &'a DueTimer),
        runtime: &'a Runtime,
        relay: &'a Relay,
        ran: Ran,
    ) -> Self {
        Self {
            ctx,
            timer,
            runtime,
            relay,
            ran,
            started: runtime.monotonic(),
            first_untried: None,
            is_overflown: false,
            is_resumed: false,
        }
    }

    pub(in super::super) async fn run(mut self) -> Result<Ran, StoreError> {
        self.begin_pass();
        let limits = (self.relay.options.rows_max, self.runtime.now_ms());
        let (groups, end) = look(self.ctx, &mut self.ran, limits).await?;
        for (index, group) in groups.into_iter().enumerate() {
            if self.is_overflown || (index > 0 && self.is_over_budget()) {
                self.untried(group.items.first().map(|item| item.sequence));
                continue;
            }
            self.work(group).await;
        }
        self.conclude(end);
        Ok(self.ran)
    }

    /// A pass goes over what was there when it began, so that those that failed have their turn again
    /// however much is appended.
    fn begin_pass(&mut self) {
        let progress = &self.ran.progress;
        if progress.pass_end > 0 && progress.cursor < progress.pass_end {
            self.is_resumed = progress.cursor > 0;
            return;
        }
        self.ran.progress = Progress {
            attempt: progress.attempt,
            pass_end: self.ran.state().last_sequence,
            ..Progress::beginning(progress.stamp)
        };
    }

    fn is_over_budget(&self) -> bool {
        let budget = Duration::from_millis(self.relay.options.run_budget_ms);
        self.runtime.monotonic().saturating_sub(self.started) >= budget
    }

    fn untried(&mut self, sequence: Option<u64>) {
        self.first_untried = match (self.first_untried, sequence) {
            (Some(first), Some(sequence)) => Some(first.min(sequence)),
            (first, sequence) => first.or(sequence),
        };
    }

    async fn work(&mut self, group: Group) {
        let outbox = self.ran.summary.outbox.clone();
        let last_sequence = self.ran.state().last_sequence;
        let deadline = Duration::from_millis(self.relay.options.call_deadline_ms);
        let target = Target::new(
            &*self.relay.store,
            (self.runtime, deadline),
            (self.ctx.partition(), &outbox, last_sequence),
            &group.target,
        );
        let end = if group.items.is_empty() {
            None
        } else {
            Some(target.absorb(&group.items).await)
        };
        let absorbed = end.as_ref().map_or(0, |end| end.absorbed);
        for item in group.items.iter().take(absorbed) {
            self.ran.delivered(item.sequence, item.bytes);
        }
        self.ran.progress.has_delivered |= absorbed > 0;
        if let Some(error) = end.and_then(|end| end.error) {
            tracing::warn!(
                partition = %self.ctx.partition(),
                %outbox,
                target = %group.target,
                %error,
                "a target took nothing; its outcomes wait"
            );
            self.ran.summary.failed += 1;
            self.block(group.target);
        } else if let Some(next) = group.items.get(absorbed) {
            self.untried(Some(next.sequence));
        } else if group.malformed.is_some() {
            self.block(group.target);
        }
    }

    /// Leaves a target out for the rest of this pass. If there is no room to remember one more, the pass
    /// ends here: nothing behind it may be tried without knowing.
    fn block(&mut self, target: Partition) {
        if self.ran.progress.blocked.len() < BLOCKED_MAX {
            self.ran.progress.blocked.push(target);
        } else {
            self.is_overflown = true;
        }
    }

    /// Where the next run goes on, and when.
    fn conclude(&mut self, end: LookEnd) {
        let last_sequence = self.ran.state().last_sequence;
        let progress = &mut self.ran.progress;
        if !self.is_overflown {
            let cursor = match (self.first_untried, end) {
                (Some(first), _) => Some(first.saturating_sub(1)),
                (None, LookEnd::Behind(sequence)) => Some(sequence),
                (None, LookEnd::PassOver | LookEnd::Stuck(_)) => None,
            };
            if let Some(cursor) = cursor {
                progress.cursor = cursor;
                self.ran.next = Next::Now;
                return;
            }
        }
        let is_held_up =
            self.is_overflown || !progress.blocked.is_empty() || matches!(end, LookEnd::Stuck(_));
        let attempt = match (is_held_up, progress.has_delivered) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => progress.attempt.saturating_add(1),
        };
        let is_all = progress.pass_end == last_sequence;
        self.ran.progress = Progress {
            attempt,
            ..Progress::beginning(progress.stamp)
        };
        self.ran.next = match (is_held_up, is_all) {
            (false, true) if self.is_resumed && self.ran.is_more_waiting() => Next::Now,
            (false, true) => Next::Drained,
            (false, false) => Next::Now,
            (true, _) => {
                let occurrence = self.timer.occurrence_id(self.ctx.partition());
                Next::BackOff {
                    delay_ms: self.relay.options.retry.delay_ms(attempt, &occurrence),
                    is_asked: false,
                }
            }
        };
    }
}

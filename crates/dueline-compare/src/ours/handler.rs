//! Handlers of Dueline that do what the script says.

use std::sync::Arc;

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::memory::MemoryStore;
use dueline::rows::TimerKey;
use dueline::runtime::Runtime;
use dueline::store::{Batch, NamespaceStore, Partition, Precondition};
use dueline::timers::{
    DueTimer, Fired, HandlerError, Policy, Timer, TimerCtx, TimerHandler, TimerKind, Timers,
};
use dueline_history::Witness;
use dueline_testkit::{ManualClock, block_on, commit};

use super::history::effect_value;
use crate::script::{EFFECT, Guard, Hands, Said};
use crate::{Id, Script};

/// A handler that does what the script says.
pub(super) struct Scripted {
    pub(super) script: Arc<Script>,
    pub(super) memory: Arc<MemoryStore>,
    pub(super) users: Arc<Witness>,
    pub(super) clock: ManualClock,
    pub(super) runtime: Runtime,
    pub(super) partition: Partition,
}

struct OurHands<'a> {
    handler: &'a Scripted,
    ctx: &'a TimerCtx<'a>,
}

impl Scripted {
    fn own_key(&self, id: &Id) -> Option<Bytes> {
        let rows = self.memory.rows(&self.partition);
        rows.into_iter().map(|(key, _)| key).find(|key| {
            TimerKey::decode(key)
                .is_ok_and(|key| key.kind.0 == id.kind && key.reference == id.reference)
        })
    }

    fn timers(&self) -> Timers {
        let store = Arc::clone(&self.users) as Arc<dyn NamespaceStore>;
        Timers::new(store, self.runtime.clone())
    }
}

impl Hands for OurHands<'_> {
    fn read(&self, key: &Bytes) -> Option<Bytes> {
        block_on(self.ctx.get(key)).ok().flatten()
    }

    fn interfere(&self, key: Bytes, value: Bytes) {
        let handler = self.handler;
        commit(
            handler.users.as_ref(),
            &handler.partition,
            Batch::new().put(key, value),
        );
    }

    fn remove_timer(&self, id: &Id, then_at_ms: Option<u64>) {
        let handler = self.handler;
        if let Some(key) = handler.own_key(id) {
            commit(
                handler.users.as_ref(),
                &handler.partition,
                Batch::new().delete(key),
            );
        }
        if let Some(due_ms) = then_at_ms {
            let timer = Timer::new(TimerKind(id.kind), id.reference.clone()).due_at(due_ms);
            let timer = timer.payload("moved");
            let moved = block_on(handler.timers().schedule(
                &handler.partition,
                timer,
                Policy::Replace,
            ));
            assert!(moved.is_ok(), "a timer within the limits: {moved:?}");
        }
    }

    fn pass(&self, ms: u64) {
        self.handler.clock.advance_ms(ms);
    }

    fn step_back(&self, ms: u64) {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        self.handler.clock.jump_wall_ms(-ms);
    }
}

impl TimerHandler for Scripted {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let id = Id::new(timer.kind().0, timer.reference().clone());
            let hands = OurHands { handler: self, ctx };
            let answer = self
                .script
                .run(&id, timer.due_at_ms(), ctx.now_ms(), &hands);
            let mut batch = Batch::new();
            for guard in answer.guards {
                batch = match guard {
                    Guard::Unchanged(key, found) => batch.require_unchanged(key, found),
                    Guard::NotAfter(ms) => batch.require(Precondition::NotAfter(ms)),
                };
            }
            let next_due_ms = match answer.said {
                Said::Reschedule(due_at_ms) => Some(due_at_ms),
                Said::Done | Said::Retry | Said::Fail => None,
            };
            for (key, value) in answer.puts {
                batch = if key.starts_with(EFFECT) {
                    batch.put(key, effect_value(timer, next_due_ms))
                } else {
                    batch.put(key, value)
                };
            }
            if let Some((id, due_ms)) = answer.spawned {
                let timer = Timer::new(TimerKind(id.kind), id.reference).due_at(due_ms);
                let plan = self.timers().plan_new(&timer.payload("spawned"))?;
                batch = batch.append(plan.batch);
            }
            if answer.writes_own_row
                && let Some(key) = self.own_key(&id)
            {
                batch = batch.put(key, "own");
            }
            match answer.said {
                Said::Done => Ok(Fired::Done(batch)),
                Said::Reschedule(due_at_ms) => Ok(Fired::Reschedule {
                    due_at_ms,
                    payload: Bytes::from_static(b"again"),
                    batch,
                }),
                Said::Retry => Ok(Fired::Retry {
                    after_ms: None,
                    reason: "the script says so".to_owned(),
                }),
                Said::Fail => Err(HandlerError::new("the script says so")),
            }
        })
    }
}

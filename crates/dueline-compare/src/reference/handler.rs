//! Handlers of the reference that do what the script says.

use std::sync::Arc;

use bytes::Bytes;
use dueline_testkit::block_on;
use mkit_server::store::keys;
use mkit_server::timers::registry::{TimerHandler, TimerKind};
use mkit_server::timers::{DueTimer, Fired, TimerCtx};
use mkit_server::{
    Batch, BatchOutcome, BoxFuture, Key, ManualClock, NamespaceStore, Partition, Precondition,
    StoreError, Value,
};

use super::faulty::Faulty;
use super::{bytes_of, timer_of};
use crate::script::{Guard, Hands, Said};
use crate::{Id, Script};

/// A handler that does what the script says.
pub(super) struct Scripted {
    pub(super) kind: u8,
    pub(super) cap: Option<u32>,
    pub(super) script: Arc<Script>,
    pub(super) clock: Arc<ManualClock>,
}

struct TheirHands<'a> {
    store: &'a Faulty,
    partition: &'a Partition,
    clock: &'a ManualClock,
}

impl TheirHands<'_> {
    fn own_key(&self, id: &Id) -> Option<Key> {
        let rows = self.store.rows(self.partition);
        rows.into_iter()
            .find(|(key, value)| timer_of(key, value).is_some_and(|(found, _)| found == *id))
            .map(|(key, _)| key)
    }

    fn commit(&self, batch: Batch) {
        let outcome = block_on(self.store.inner.apply(self.partition, batch));
        assert!(
            matches!(outcome, Ok(BatchOutcome::Committed)),
            "{outcome:?}"
        );
    }
}

impl Hands for TheirHands<'_> {
    fn read(&self, key: &Bytes) -> Option<Bytes> {
        let found = block_on(self.store.get(self.partition, &Key::new(key.clone())));
        found.ok().flatten().map(|value| bytes_of(&value))
    }

    fn interfere(&self, key: Bytes, value: Bytes) {
        self.commit(Batch::new().put(Key::new(key), Value::new(value)));
    }

    fn remove_timer(&self, id: &Id, then_at_ms: Option<u64>) {
        if let Some(key) = self.own_key(id) {
            self.commit(Batch::new().delete(key));
        }
        if let Some(due_ms) = then_at_ms {
            let key = keys::timer(due_ms, id.kind, &id.reference);
            self.commit(Batch::new().put(key, Value::new("moved")));
        }
    }

    fn pass(&self, ms: u64) {
        self.clock.advance(i64::try_from(ms).unwrap_or(i64::MAX));
    }

    fn step_back(&self, ms: u64) {
        self.clock.advance(-i64::try_from(ms).unwrap_or(i64::MAX));
    }
}

impl TimerHandler<Faulty> for Scripted {
    fn kind(&self) -> TimerKind {
        TimerKind::new(self.kind)
    }

    fn max_per_tick(&self) -> Option<u32> {
        self.cap
    }

    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a, Faulty>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, StoreError>> {
        Box::pin(async move {
            let id = Id::new(timer.kind.get(), timer.reference.clone());
            let hands = TheirHands {
                store: ctx.store,
                partition: ctx.partition,
                clock: &self.clock,
            };
            let answer = self.script.run(&id, timer.due_at_ms, ctx.now_ms, &hands);
            let mut batch = Batch::new();
            for guard in answer.guards {
                batch = batch.require(match guard {
                    Guard::Unchanged(key, Some(found)) => {
                        Precondition::Equals(Key::new(key), Value::new(found))
                    }
                    Guard::Unchanged(key, None) => Precondition::Absent(Key::new(key)),
                    Guard::NotAfter(ms) => Precondition::NotAfter(ms),
                });
            }
            for (key, value) in answer.puts {
                batch = batch.put(Key::new(key), Value::new(value));
            }
            if let Some((id, due_ms)) = answer.spawned {
                let key = keys::timer(due_ms, id.kind, &id.reference);
                batch = batch.put(key, Value::new("spawned"));
            }
            if answer.writes_own_row
                && let Some(key) = hands.own_key(&id)
            {
                batch = batch.put(key, Value::new("own"));
            }
            match answer.said {
                Said::Done => Ok(Fired::Done(batch)),
                Said::Reschedule(due_at_ms) => Ok(Fired::Reschedule {
                    due_at_ms,
                    value: Value::new("again"),
                    batch,
                }),
                Said::Retry => Ok(Fired::Retry),
                Said::Fail => Err(StoreError::Invalid("the script says so".into())),
            }
        })
    }
}

//! An outbox with a relay, and targets in the same store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::kinds::outcome_delivery::{
    DeliveryOptions, OUTCOME_DELIVERY, Outbox, OutboxName, OutcomeDelivery, Relay, RelayMessage,
};
use dueline::store::{Group, Partition, StoreErrorKind, Value};
use dueline::timers::Engine;
use dueline_testkit::{CommitFault, block_on};

use super::fixture::{exact, timers_of};
use crate::{Make, World};

pub(super) struct Ferry {
    pub(super) world: World,
    pub(super) engine: Engine,
    pub(super) outbox: Outbox,
}

pub(super) fn partition(name: &str) -> Partition {
    Partition::new(Bytes::copy_from_slice(name.as_bytes())).unwrap()
}

pub(super) fn message(target: &str, key: &str, value: &str) -> RelayMessage {
    let (key, value) = (key.to_owned(), value.to_owned());
    RelayMessage::to(partition(target)).put(key, value)
}

impl Ferry {
    pub(super) fn new(make: Make<'_>) -> Self {
        Self::with(make, exact())
    }

    pub(super) fn with(make: Make<'_>, options: DeliveryOptions) -> Self {
        let world = World::new(make);
        let name = OutboxName::new("ferry").unwrap();
        let relay = Relay::new(world.shared()).options(options);
        let delivery = OutcomeDelivery::new(world.runtime.clone()).relay(name.clone(), relay);
        let engine = world.engine(OUTCOME_DELIVERY, delivery.registration());
        let outbox = Outbox::new(world.timers.clone(), world.partition.clone(), name);
        Self {
            world,
            engine,
            outbox,
        }
    }

    #[track_caller]
    pub(super) fn send(&self, messages: &[RelayMessage]) {
        let outcomes = messages
            .iter()
            .map(|message| message.outcome("id").unwrap());
        let outcomes: Vec<_> = outcomes.collect();
        for some in outcomes.chunks(90) {
            block_on(self.outbox.append(some)).unwrap();
        }
    }

    /// Sends one put each: `(target, key, value)`.
    #[track_caller]
    pub(super) fn send_puts(&self, puts: &[(&str, &str, &str)]) {
        let messages = puts
            .iter()
            .map(|(target, key, value)| message(target, key, value));
        self.send(&messages.collect::<Vec<_>>());
    }

    pub(super) fn tick(&self) {
        self.world.tick(&self.engine);
    }

    #[track_caller]
    pub(super) fn due_in_ms(&self) -> u64 {
        let timers = timers_of(&self.world);
        let first = timers.iter().map(|(key, _)| key.due_ms).min();
        first.expect("a timer").saturating_sub(self.world.now_ms())
    }

    #[track_caller]
    pub(super) fn tick_when_due(&self) {
        self.world.advance_ms(self.due_in_ms());
        self.tick();
    }

    #[track_caller]
    pub(super) fn drain(&self) -> usize {
        for ticks in 0..2_000 {
            if self.world.timer_keys().is_empty() {
                assert_eq!(self.backlog(), 0);
                return ticks;
            }
            self.tick_when_due();
        }
        panic!("the outbox does not drain: {} wait", self.backlog());
    }

    pub(super) fn backlog(&self) -> u64 {
        block_on(self.outbox.backlog()).unwrap().rows
    }

    /// The value of a row of a target.
    #[track_caller]
    pub(super) fn at(&self, target: &str, key: &str) -> Option<Value> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        block_on(self.world.store.inner().get(&partition(target), &key)).unwrap()
    }

    /// Lets every commit to the targets whose name begins like this fail, and tells which were tried.
    pub(super) fn fail_targets(&self, prefix: &'static str) -> Arc<Mutex<BTreeSet<String>>> {
        let tried: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let seen = Arc::clone(&tried);
        self.world
            .store
            .fail_commits_with(move |partition: &Partition, _: &Group| {
                let name = partition.to_string();
                if !name.starts_with(prefix) {
                    return None;
                }
                seen.lock().unwrap().insert(name);
                Some(CommitFault::NotWritten(StoreErrorKind::Unavailable))
            });
        tried
    }
}

/// The key of the watermark of this outbox in its targets.
pub(super) fn watermark_key() -> Bytes {
    Bytes::from_static(b"b\0\x08h\0\x01pferry")
}

pub(super) fn watermark(sequence: u64) -> Bytes {
    Bytes::from([&[1], &sequence.to_be_bytes()[..]].concat())
}

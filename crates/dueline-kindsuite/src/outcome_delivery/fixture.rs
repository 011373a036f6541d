//! An outbox, a sink that answers as the case says, and an engine that delivers.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{
    Backlog, Delivery, DeliveryMeter, DeliveryOptions, OUTCOME_DELIVERY, Outbox, OutboxBuilder,
    OutboxName, Outcome, OutcomeDelivery, RunSummary, Sink, SinkError,
};
use dueline::rows::{TimerKey, TimerRow};
use dueline::store::{Batch, Partition, ReadStore, WakeStore};
use dueline::timers::{Engine, RetryPolicy, Timers};
use dueline_testkit::{ManualClock, block_on};

use crate::{Make, World};

/// What the sink of a case says to a delivery.
pub(super) enum Answer {
    Taken,
    Fails(SinkError),
    /// Takes it after this time, in milliseconds.
    Slow(u64),
    /// Never answers; the time passes by this many milliseconds.
    Hangs(u64),
    Panics,
}

/// Says that the delivery failed.
pub(super) fn fails() -> Answer {
    Answer::Fails(SinkError::failed("the receiver says 500"))
}

type Script = Box<dyn FnMut(&Delivery) -> Answer + Send>;

/// A sink that remembers what it was told.
#[derive(Clone)]
pub(super) struct Told {
    clock: ManualClock,
    log: Arc<Mutex<Vec<Delivery>>>,
    script: Arc<Mutex<Script>>,
}

impl Told {
    pub(super) fn new(clock: &ManualClock) -> Self {
        Self {
            clock: clock.clone(),
            log: Arc::default(),
            script: Arc::new(Mutex::new(Box::new(|_| Answer::Taken))),
        }
    }

    pub(super) fn answers(&self, script: impl FnMut(&Delivery) -> Answer + Send + 'static) {
        *locked(&self.script) = Box::new(script);
    }

    /// Every call since this was last asked.
    pub(super) fn take(&self) -> Vec<Delivery> {
        std::mem::take(&mut *locked(&self.log))
    }

    /// The ids of every call since this was last asked.
    pub(super) fn take_ids(&self) -> Vec<String> {
        let calls = self.take();
        calls.iter().map(|call| text(&call.id)).collect()
    }
}

pub(super) fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets whoever polls begin its deadline.
pub(super) async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Sink for Told {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        locked(&self.log).push(delivery.clone());
        let answer = locked(&self.script)(delivery);
        Box::pin(async move {
            match answer {
                Answer::Taken => Ok(()),
                Answer::Fails(error) => Err(error),
                Answer::Panics => panic!("the sink panics"),
                Answer::Slow(ms) => {
                    self.clock.advance_ms(ms);
                    Ok(())
                }
                Answer::Hangs(ms) => {
                    give_way().await;
                    self.clock.advance_ms(ms);
                    pending().await
                }
            }
        })
    }

    fn wants(&self, delivery: &Delivery) -> bool {
        !delivery.id.starts_with(b"unwanted")
    }
}

/// Remembers the summaries of all runs.
#[derive(Clone, Default)]
pub(super) struct Meter(Arc<Mutex<Vec<RunSummary>>>);

impl Meter {
    pub(super) fn take(&self) -> Vec<RunSummary> {
        std::mem::take(&mut *locked(&self.0))
    }
}

impl DeliveryMeter for Meter {
    fn ran(&self, summary: &RunSummary) {
        locked(&self.0).push(summary.clone());
    }
}

/// Delays of 1, 2, 4 .. s without jitter, so that a case can name them.
pub(super) fn exact() -> DeliveryOptions {
    DeliveryOptions::new().retry(RetryPolicy {
        attempts_max: Some(20),
        initial_ms: 1_000,
        max_ms: 900_000,
        jitter_percent: 0,
    })
}

/// One outbox with its sink.
pub(super) struct Post {
    pub(super) world: World,
    pub(super) told: Told,
    pub(super) meter: Meter,
    pub(super) engine: Engine,
    pub(super) outbox: Outbox,
}

pub(super) fn name() -> OutboxName {
    OutboxName::new("mail").unwrap()
}

pub(super) fn outcome(id: &str) -> Outcome {
    Outcome {
        id: Bytes::copy_from_slice(id.as_bytes()),
        body: Bytes::from(format!("body of {id}")),
    }
}

impl Post {
    pub(super) fn new(make: Make<'_>) -> Self {
        Self::with(make, exact())
    }

    pub(super) fn with(make: Make<'_>, options: DeliveryOptions) -> Self {
        let world = World::new(make);
        let told = Told::new(&world.clock);
        let meter = Meter::default();
        let delivery = OutcomeDelivery::new(world.runtime.clone())
            .sink_with(name(), told.clone(), options)
            .meter(meter.clone());
        let engine = world.engine(OUTCOME_DELIVERY, delivery.registration());
        let outbox = Outbox::new(world.timers.clone(), world.partition.clone(), name());
        Self {
            world,
            told,
            meter,
            engine,
            outbox,
        }
    }

    #[track_caller]
    pub(super) fn append(&self, ids: &[&str]) -> Vec<u64> {
        let outcomes: Vec<Outcome> = ids.iter().map(|id| outcome(id)).collect();
        block_on(self.outbox.append(&outcomes)).unwrap()
    }

    /// One tick, and the ids of the calls it made.
    #[track_caller]
    pub(super) fn tick(&self) -> Vec<String> {
        self.world.tick(&self.engine);
        self.told.take_ids()
    }

    /// Moves the clock to the due of the one timer and ticks.
    #[track_caller]
    pub(super) fn tick_when_due(&self) -> Vec<String> {
        self.world.advance_ms(self.due_in_ms());
        self.tick()
    }

    /// Ticks whenever something is due, until nothing is left.
    #[track_caller]
    pub(super) fn drain(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..2_000 {
            if self.world.timer_keys().is_empty() {
                return ids;
            }
            ids.extend(self.tick_when_due());
        }
        panic!("the outbox does not drain: {ids:?}");
    }

    #[track_caller]
    pub(super) fn backlog(&self) -> Backlog {
        block_on(self.outbox.backlog()).unwrap()
    }

    /// The one timer of the outbox.
    #[track_caller]
    pub(super) fn timer(&self) -> (TimerKey, TimerRow) {
        only_timer(&self.world)
    }

    /// How long until the one timer is due, in milliseconds.
    #[track_caller]
    pub(super) fn due_in_ms(&self) -> u64 {
        let timers = timers_of(&self.world);
        let first = timers.iter().map(|(key, _)| key.due_ms).min();
        first.expect("a timer").saturating_sub(self.world.now_ms())
    }

    /// How many failures in a row the timer remembers.
    #[track_caller]
    pub(super) fn failures_in_a_row(&self) -> u16 {
        let (_, row) = self.timer();
        u16::from_be_bytes(row.payload[9..11].try_into().unwrap())
    }
}

pub(super) fn timers_of(world: &World) -> Vec<(TimerKey, TimerRow)> {
    let keys = world.timer_keys();
    let timers = keys.iter().map(|key| {
        let value = world.get(key).unwrap();
        (
            TimerKey::decode(key).unwrap(),
            TimerRow::decode(&value).unwrap(),
        )
    });
    timers.collect()
}

#[track_caller]
pub(super) fn only_timer(world: &World) -> (TimerKey, TimerRow) {
    let mut timers = timers_of(world);
    assert_eq!(timers.len(), 1, "one timer: {timers:?}");
    timers.remove(0)
}

/// A batch that appends one outcome, read from the store as it is now.
pub(super) fn append_batch(
    reads: &dyn ReadStore,
    partition: &Partition,
    timers: &Timers,
    appended: Outcome,
) -> Batch {
    block_on(async {
        let now_ms = timers.runtime().now_ms();
        let mut builder = OutboxBuilder::read(reads, partition, &name())
            .await
            .unwrap();
        builder.append(appended, now_ms).unwrap();
        builder.finish(timers, now_ms).unwrap()
    })
}

/// Appends an outcome behind the store's back, as another writer does just before a commit.
pub(super) fn append_inside(
    store: &dyn WakeStore,
    partition: &Partition,
    timers: &Timers,
    appended: Outcome,
) {
    let batch = append_batch(store, partition, timers, appended);
    let outcome = block_on(store.apply(partition, batch)).unwrap();
    assert!(outcome.is_committed());
}

//! The world under test: handlers whose effects can be counted, an engine, and a driver that goes by
//! the store's wakes alone.
//!
//! A handler's effect is one more on the counter of its timer, in the batch that ends the timer. So
//! a counter says how often a timer took effect. What a timer does is said by the beginning of its
//! reference: `flaky` fails at its first attempt, `doomed` at each, `repeat` runs three times.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use dueline::rows::class;
use dueline::runtime::Runtime;
use dueline::store::{
    Batch, Key, LaneWake, NamespaceStore, Partition, ScanRange, StoreError, Value, WakeStore,
};
use dueline::timers::{
    DetachedHandler, DueTimer, Engine, Fired, HandlerError, KindSet, Registration, Registry,
    RegistryError, RetryPolicy, TickBudget, TickRequest, TimerCtx, TimerHandler, TimerKind,
};
use dueline::{BoxFuture, Bytes};

/// Fires in groups of 8.
pub(crate) const GROUPED: TimerKind = TimerKind(16);
/// Calls out: claimed, called, settled.
pub(crate) const CALLING: TimerKind = TimerKind(17);
/// Fires one by one; the kind that is paused and resumed.
pub(crate) const SINGLE: TimerKind = TimerKind(18);
pub(crate) const KINDS: [TimerKind; 3] = [GROUPED, CALLING, SINGLE];

/// How often a `repeat` timer runs.
pub(crate) const REPEATS: u64 = 3;
pub(crate) const REPEAT_EVERY_MS: u64 = 5_000;

/// All rows of all partitions: (partition, key) to value.
pub(crate) type Rows = BTreeMap<(Bytes, Key), Value>;

struct Counting;

const COUNTER: &[u8] = b"count/";

pub(crate) fn counter_key(reference: &Bytes) -> Key {
    Bytes::from([COUNTER, reference.as_ref()].concat())
}

/// The reference of the timer whose counter this is.
pub(crate) fn counter_of(key: &Key) -> Option<&[u8]> {
    key.strip_prefix(COUNTER)
}

/// What a counter says: how often its timer took effect, and of the last time what its handler saw
/// and asked for: `count:u64 attempt:u16 due_ms:u64`, and `next_due_ms:u64` if the timer goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    pub(crate) count: u64,
    pub(crate) attempt: u16,
    pub(crate) due_ms: u64,
    pub(crate) next_due_ms: Option<u64>,
}

impl Counter {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let (count, rest) = value.split_first_chunk()?;
        let (attempt, rest) = rest.split_first_chunk()?;
        let (due_ms, rest) = rest.split_first_chunk()?;
        Some(Self {
            count: u64::from_be_bytes(*count),
            attempt: u16::from_be_bytes(*attempt),
            due_ms: u64::from_be_bytes(*due_ms),
            next_due_ms: rest.first_chunk().copied().map(u64::from_be_bytes),
        })
    }

    fn write(self) -> Value {
        let mut value = self.count.to_be_bytes().to_vec();
        value.extend(self.attempt.to_be_bytes());
        value.extend(self.due_ms.to_be_bytes());
        value.extend(self.next_due_ms.iter().flat_map(|it| it.to_be_bytes()));
        value.into()
    }
}

pub(crate) fn counted(value: Option<&Value>) -> u64 {
    value.and_then(Counter::read).map_or(0, |it| it.count)
}

async fn count(ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Fired, HandlerError> {
    let reference = timer.reference();
    if reference.starts_with(b"doomed") || (reference.starts_with(b"flaky") && timer.attempt() == 1)
    {
        return Err(HandlerError::new("it is one of those that fail"));
    }
    let key = counter_key(reference);
    let seen = ctx.get(&key).await?;
    let next = counted(seen.as_ref()) + 1;
    let goes_on = reference.starts_with(b"repeat") && next < REPEATS;
    let counter = Counter {
        count: next,
        attempt: timer.attempt(),
        due_ms: timer.due_at_ms(),
        next_due_ms: goes_on.then(|| timer.due_at_ms() + REPEAT_EVERY_MS),
    };
    let batch = Batch::new()
        .require_unchanged(key.clone(), seen)
        .put(key, counter.write());
    Ok(match counter.next_due_ms {
        Some(due_at_ms) => Fired::Reschedule {
            due_at_ms,
            payload: timer.payload().clone(),
            batch,
        },
        None => Fired::Done(batch),
    })
}

impl TimerHandler for Counting {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(count(ctx, timer))
    }
}

impl DetachedHandler for Counting {
    type Output = ();

    fn call<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(count(ctx, timer))
    }
}

/// How all three kinds retry.
pub(crate) fn retry_policy() -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(2),
        ..RetryPolicy::default()
    }
}

/// An engine with the three kinds.
pub(crate) fn engine(
    store: Arc<dyn NamespaceStore>,
    runtime: Runtime,
) -> Result<Engine, RegistryError> {
    let retry = retry_policy();
    let registry = Registry::new()
        .with(
            GROUPED,
            Registration::inline(Counting).group_max(8).retry(retry),
        )?
        .with(CALLING, Registration::detached(Counting).retry(retry))?
        .with(SINGLE, Registration::inline(Counting).retry(retry))?;
    Ok(Engine::new(store, runtime, registry))
}

/// What a round does with the calls it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Runs and settles them.
    Settle,
    /// Drops them, as a process that dies then does.
    Drop,
}

/// One look of a driver: reads the due wakes and ticks their partitions. Says how many there were.
pub(crate) async fn serve(
    store: &dyn WakeStore,
    engine: &Engine,
    calls: Calls,
) -> Result<usize, StoreError> {
    let now_ms = engine.runtime().now_ms();
    let page = store.due_wakes(&KindSet::all(), now_ms, None, 256).await?;
    let found = page.wakes.len();
    let mut by_partition: BTreeMap<Partition, Vec<LaneWake>> = BTreeMap::new();
    for wake in page.wakes {
        by_partition
            .entry(wake.partition)
            .or_default()
            .push(LaneWake {
                kind: wake.kind,
                at_ms: wake.at_ms,
            });
    }
    for (partition, wakes) in by_partition {
        let request = TickRequest {
            partition: &partition,
            wakes: Some(&wakes),
            cautious_until_ms: store.unclean_opened_at_ms(),
        };
        let mut budget = engine.start_tick(TickBudget::native());
        let tick = engine.tick(request, &mut budget).await;
        for call in tick.calls {
            if calls == Calls::Settle {
                let finished = call.run().await;
                engine.settle(finished).await;
            }
        }
    }
    Ok(found)
}

/// Reads every row.
pub(crate) async fn read_all(store: &dyn WakeStore) -> Result<Rows, StoreError> {
    let mut rows = Rows::new();
    let mut after = None;
    loop {
        let page = store.partitions(after.as_ref(), 100).await?;
        for partition in page.partitions {
            read_partition(store, &partition, &mut rows).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(rows);
        }
    }
}

async fn read_partition(
    store: &dyn WakeStore,
    partition: &Partition,
    rows: &mut Rows,
) -> Result<(), StoreError> {
    let mut range = ScanRange::new(Bytes::new(), Bytes::from(vec![0xff; 8]), 500);
    loop {
        let page = store.scan(partition, &range).await?;
        for (key, value) in page.rows {
            rows.insert((partition.to_bytes(), key), value);
        }
        if page.next.is_none() {
            return Ok(());
        }
        range = range.after(page.next);
    }
}

/// Whether the row is the engine's business still: a timer, its name, a pause.
pub(crate) fn is_unfinished(key: &Key) -> bool {
    [class::TIMER, class::PAUSE, class::QUARANTINE]
        .iter()
        .any(|class| dueline::rows::is_of_class(key, *class))
}

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future on this thread as a tick thread of the native driver does.
pub(crate) fn run<F: Future>(store: &dyn WakeStore, future: F) -> F::Output {
    let unpark = Arc::new(Unpark {
        thread: std::thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            store.before_park();
            return output;
        }
        store.before_park();
        while !unpark.woken.swap(false, Ordering::AcqRel) {
            std::thread::park();
        }
    }
}

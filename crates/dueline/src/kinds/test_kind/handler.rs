use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{BufMut, Bytes};

use super::TEST_KIND;
use super::script::{Fault, SCRIPT_FORM, Script};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::kinds::fuzzing::Form;
use crate::kinds::observed::Observed;
use crate::kinds::row::{Row, Table};
use crate::limits::{BATCH_BYTES_MAX, HANDLER_OPS_MAX, VALUE_BYTES_MAX};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::{Batch, Key, Partition, ReadStore, StoreError};
use crate::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, TimerCtx, TimerHandler,
};

/// How often timers of a reference have succeeded: `62 00 ff 64`, the reference.
const DONE: Table = Table::new(TEST_KIND, b'd');
/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] = &[Form::row::<Done>(DONE), SCRIPT_FORM];
/// No row: what a batch requires that is to lose its guard, and where one that is too large writes.
const NOTHING: Table = Table::new(TEST_KIND, b'n');

/// `version:u8 successes:u64`.
struct Done {
    successes: u64,
}

impl Row for Done {
    const WHAT: &'static str = "the successes of a timer of the test kind";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.successes);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let successes = reader.u64()?;
        reader.end()?;
        Ok(Self { successes })
    }
}

/// How often timers of this reference have succeeded in a partition.
///
/// # Errors
/// What the store says.
pub async fn successes(
    reads: &dyn ReadStore,
    partition: &Partition,
    reference: impl Into<Bytes>,
) -> Result<u64, StoreError> {
    let done = Observed::<Done>::read(reads, partition, done_key(&reference.into()));
    Ok(done.await?.row.map_or(0, |row| row.successes))
}

/// A key that every reference fits into: one is as long as half a key.
fn done_key(reference: &Bytes) -> Key {
    DONE.key(&[reference])
}

#[cfg(not(target_arch = "wasm32"))]
type OnUnknown = dyn Fn(&DueTimer) + Send + Sync;
#[cfg(target_arch = "wasm32")]
type OnUnknown = dyn Fn(&DueTimer);

/// The handler of [`TEST_KIND`]. Clones share what they count.
#[derive(Clone, Default)]
pub struct TestKind {
    /// How many runs a scheduling has had here.
    runs: Arc<Mutex<BTreeMap<(Partition, u64), u64>>>,
    on_unknown: Option<Arc<OnUnknown>>,
}

impl TestKind {
    /// A handler that has seen no run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Called with each timer that is about to commit and whose outcome is to be unknown: makes the
    /// store's next commit so. Without it such a run ends in an error that says so.
    #[must_use]
    pub fn on_unknown_outcome(
        mut self,
        tell: impl Fn(&DueTimer) + MaybeSendSync + 'static,
    ) -> Self {
        self.on_unknown = Some(Arc::new(tell));
        self
    }

    /// The kind as one that runs within the tick, one timer a commit: see [`Registration::inline`].
    pub fn inline(&self) -> Registration {
        Registration::inline(self.clone())
    }

    /// The kind as one that calls out: see [`Registration::detached`]. Errors, panics and hanging happen
    /// in the call, the others in its settling.
    pub fn detached(&self) -> Registration {
        Registration::detached(self.clone())
    }

    /// Counts a run, and says which fault it meets and what is left behind it.
    fn begin(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
    ) -> Result<(Option<Fault>, Script), HandlerError> {
        let script = Script::read(timer.payload())
            .map_err(|malformed| HandlerError::undecodable(malformed.to_string()))?;
        let key = (ctx.partition().clone(), timer.generation());
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = runs.get(&key).copied().unwrap_or(0);
        let runs_before = seen.max(u64::from(timer.attempt().saturating_sub(1)));
        let (fault, rest) = script.behind(runs_before);
        if fault.is_some() {
            runs.insert(key, runs_before.saturating_add(1));
        } else {
            runs.remove(&key);
        }
        Ok((fault, rest))
    }

    async fn end(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        (fault, rest): &(Option<Fault>, Script),
    ) -> Result<Fired, HandlerError> {
        let reference = timer.reference();
        let nothing = NOTHING.key(&[reference]);
        let batch = match fault {
            None => self.success(ctx, reference).await?,
            Some(Fault::LostGuard) => Batch::new().require_present(nothing),
            Some(Fault::TooManyOps) => {
                (0..=HANDLER_OPS_MAX).fold(Batch::new(), |batch, _| batch.delete(nothing.clone()))
            }
            Some(Fault::TooManyBytes) => (0..=BATCH_BYTES_MAX / VALUE_BYTES_MAX)
                .fold(Batch::new(), |batch, _| {
                    batch.put(nothing.clone(), vec![0; VALUE_BYTES_MAX])
                }),
            Some(Fault::TouchesItself) => Batch::new().delete(timer.key().encode()),
            Some(Fault::UnknownOutcome) => {
                let Some(tell) = &self.on_unknown else {
                    return Err(HandlerError::new(
                        "an unknown outcome was asked for, and no store to tell of it is known",
                    ));
                };
                tell(timer);
                self.success(ctx, reference).await?
            }
            Some(Fault::PastReschedule) => {
                return Ok(Fired::Reschedule {
                    due_at_ms: timer.due_at_ms().saturating_sub(1_000),
                    payload: rest.payload(),
                    batch: Batch::new(),
                });
            }
            Some(Fault::Retry(after_ms)) => {
                return Ok(Fired::Retry {
                    after_ms: Some(*after_ms),
                    reason: "a retry was asked for".to_owned(),
                });
            }
            Some(Fault::Dead) => {
                return Ok(Fired::Dead {
                    reason: "to be given up was asked for".to_owned(),
                    batch: Batch::new(),
                });
            }
            Some(Fault::Error | Fault::Uncharged | Fault::Panic | Fault::Hang)
            | Some(Fault::Undecodable) => Batch::new(),
        };
        Ok(Fired::Done(batch))
    }

    async fn success(&self, ctx: &TimerCtx<'_>, reference: &Bytes) -> Result<Batch, StoreError> {
        let key = done_key(reference);
        let done = Observed::<Done>::read(ctx.reads(), ctx.partition(), key).await?;
        let before = done.row.as_ref().map_or(0, |row| row.successes);
        let after = Done {
            successes: before.saturating_add(1),
        };
        Ok(done.replace(Batch::new(), Some(&after)))
    }
}

/// The faults that end a run before it has a batch.
async fn fail(fault: Option<Fault>) -> Result<(), HandlerError> {
    match fault {
        Some(Fault::Error) => Err(HandlerError::new("an error was asked for")),
        Some(Fault::Uncharged) => Err(HandlerError::uncharged("an error was asked for")),
        Some(Fault::Undecodable) => Err(HandlerError::undecodable("so it was asked for")),
        #[allow(clippy::panic, reason = "it was asked for")]
        Some(Fault::Panic) => panic!("a panic was asked for"),
        Some(Fault::Hang) => std::future::pending().await,
        _ => Ok(()),
    }
}

impl TimerHandler for TestKind {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let run = self.begin(ctx, timer)?;
            fail(run.0).await?;
            self.end(ctx, timer, &run).await
        })
    }
}

impl DetachedHandler for TestKind {
    /// Whether the call has met the fault of the run, so that its settling is not a run of its own.
    type Output = Mutex<Option<(Option<Fault>, Script)>>;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Self::Output, HandlerError>> {
        Box::pin(async move {
            let run = self.begin(ctx, timer)?;
            fail(run.0).await?;
            Ok(Mutex::new(Some(run)))
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a Self::Output,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            // A settling that lost its guard is planned again: that is the next run.
            let called = output.lock().unwrap_or_else(PoisonError::into_inner).take();
            let run = match called {
                Some(run) => run,
                None => {
                    let run = self.begin(ctx, timer)?;
                    fail(run.0).await?;
                    run
                }
            };
            self.end(ctx, timer, &run).await
        })
    }
}

impl fmt::Debug for TestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestKind")
            .field("runs", &self.runs)
            .field("tells_of_unknown_outcomes", &self.on_unknown.is_some())
            .finish()
    }
}

use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use super::PUBLICATION_RECHECK;
use super::cursor::{WalkCursor, WalkDigest, digest};
use super::gate::{
    DEPENDENCIES_MAX, Dependency, Gate, Gated, GatedRecord, RemoteAllowance, STATE_KEYS_MAX,
};
use super::walk::{LocalSeen, RemoteWalk, Stop, look_at_local};
use crate::future::BoxFuture;
use crate::kind::TimerKind;
use crate::kinds::owner::drained;
use crate::kinds::row::Row;
use crate::limits::{BATCH_BYTES_MAX, HANDLER_OPS_MAX};
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Precondition, ReadStore};
use crate::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, RetryPolicy, TimerCtx, Timers,
};

/// How long after a look in vain the next is, in milliseconds.
pub const RECHECK_MS: u64 = 5_000;
/// How long after an allowance was used up the walk goes on, in milliseconds.
const ALLOWANCE_MS: u64 = 1_000;
/// How long after it was planned a checkpoint or a release may commit, in milliseconds.
const COMMIT_WITHIN_MS: u64 = 10_000;

/// The handler of [`PUBLICATION_RECHECK`](super::PUBLICATION_RECHECK): releases records when all their
/// dependencies are visible.
///
/// It reads other partitions, so it needs timers over a store that reaches them, or [`reads`](Self::reads).
pub struct PublicationRecheck {
    gate: Arc<dyn Gate>,
    timers: Timers,
    reads: Option<Arc<dyn ReadStore>>,
    allowance: Option<Arc<dyn RemoteAllowance>>,
}

impl fmt::Debug for PublicationRecheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicationRecheck").finish_non_exhaustive()
    }
}

/// What the walk came to.
#[derive(Debug)]
pub struct Walked(Option<Walk>);

#[derive(Debug)]
struct Walk {
    record: GatedRecord,
    digest: WalkDigest,
    local: Vec<Dependency>,
    position: usize,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Obliged,
    Stopped(Stop),
}

impl PublicationRecheck {
    /// A handler of this gate over the store of these timers.
    pub fn new(gate: impl Gate, timers: Timers) -> Self {
        Self {
            gate: Arc::new(gate),
            timers,
            reads: None,
            allowance: None,
        }
    }

    /// The same; other partitions are read here instead of in the store of the timers. Only
    /// [`get_many`](ReadStore::get_many) is called, for at most eight keys of one partition.
    #[must_use]
    pub fn reads(mut self, reads: Arc<dyn ReadStore>) -> Self {
        self.reads = Some(reads);
        self
    }

    /// The same; each remote read takes one of a shared allowance too.
    #[must_use]
    pub fn allowance(mut self, allowance: Arc<dyn RemoteAllowance>) -> Self {
        self.allowance = Some(allowance);
        self
    }

    /// The kind and how it is run, for a registry: detached; what fails is tried again for ever, 5 to 60 s later. Only a cursor that
    /// does not decode, which nothing mends, is dead after 20 attempts.
    pub fn entry(self) -> (TimerKind, Registration) {
        let policy = RetryPolicy {
            max_ms: 60_000,
            ..RetryPolicy::default()
        };
        let registration = Registration::detached(self);
        (PUBLICATION_RECHECK, registration.retry(policy.for_ever()))
    }

    async fn walk(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Walked, HandlerError> {
        let cursor = WalkCursor::of_payload(timer.payload())
            .map_err(|malformed| HandlerError::new(format!("the cursor: {}", malformed.0)))?;
        let Some(record) = self.read(ctx, timer).await? else {
            return Ok(Walked(None));
        };
        let Some(mut gated) = self.gate.gated(&record)? else {
            return Ok(Walked(None));
        };
        // By a heap: the module for objects has no other use of the library's sorts, and they are large.
        gated.dependencies = BinaryHeap::from(gated.dependencies).into_sorted_vec();
        gated.dependencies.dedup();
        if gated.dependencies.len() > DEPENDENCIES_MAX {
            return Err(HandlerError::new(format!(
                "a record has at most {DEPENDENCIES_MAX} dependencies, this one has {}",
                gated.dependencies.len()
            )));
        }
        let digest = digest(&record, &gated);
        let Gated {
            is_obliged,
            dependencies,
            ..
        } = gated;
        let (local, remote): (Vec<_>, Vec<_>) = dependencies
            .into_iter()
            .partition(|of| of.partition == *ctx.partition());
        let (position, end) = if is_obliged {
            (0, End::Obliged)
        } else {
            let from = position_in(cursor, &digest, remote.len())?;
            let (position, stop) = self.walk_on(&remote, from).await?;
            (position, End::Stopped(stop))
        };
        Ok(Walked(Some(Walk {
            record,
            digest,
            local,
            position,
            end,
        })))
    }

    async fn walk_on(
        &self,
        remote: &[Dependency],
        from: usize,
    ) -> Result<(usize, Stop), HandlerError> {
        let walk = RemoteWalk {
            gate: &*self.gate,
            reads: match &self.reads {
                Some(reads) => &**reads,
                None => &**self.timers.store(),
            },
            runtime: self.timers.runtime(),
            allowance: self.allowance.as_deref(),
            remote,
        };
        Ok(walk.go_on(from).await?)
    }

    /// Reads the record and its state; `None` if the record is gone.
    async fn read(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
    ) -> Result<Option<GatedRecord>, HandlerError> {
        let key = timer.reference().clone();
        let mut keys = self.gate.state_keys(&key);
        if keys.len() > STATE_KEYS_MAX {
            return Err(HandlerError::new(format!(
                "a release depends on at most {STATE_KEYS_MAX} rows beside the record, this one on {}",
                keys.len()
            )));
        }
        keys.push(key);
        let mut found = ctx.reads().get_many(ctx.partition(), &keys).await?;
        let (Some(key), Some(Some(value))) = (keys.pop(), found.pop()) else {
            return Ok(None);
        };
        let state = keys.into_iter().zip(found).collect();
        Ok(Some(GatedRecord { key, value, state }))
    }

    async fn plan(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        walk: &Walk,
    ) -> Result<Fired, HandlerError> {
        let delay_ms = match walk.end {
            End::Stopped(Stop::Complete) => {
                let (gate, local) = (&*self.gate, &walk.local);
                let seen = look_at_local(gate, ctx.reads(), ctx.partition(), local);
                if let Some(seen) = seen.await? {
                    let release = self.gate.release(ctx, &walk.record).await?;
                    return Ok(Fired::Done(released(walk, ctx.now_ms(), release, seen)));
                }
                RECHECK_MS
            }
            End::Obliged | End::Stopped(Stop::Missing | Stop::Failed) => RECHECK_MS,
            End::Stopped(Stop::Allowance) => ALLOWANCE_MS,
            End::Stopped(Stop::Budget) => 0,
        };
        let cursor = WalkCursor {
            digest: walk.digest,
            position: u32::try_from(walk.position).unwrap_or(u32::MAX),
        };
        let due_at_ms = ctx.now_ms().saturating_add(delay_ms);
        Ok(Fired::Reschedule {
            due_at_ms: due_at_ms.max(timer.due_at_ms().saturating_add(1)),
            payload: cursor.encode(),
            batch: guarded(walk, ctx.now_ms()),
        })
    }
}

/// Where a walk begins: at the cursor, if it belongs to what is there now.
fn position_in(
    cursor: Option<WalkCursor>,
    digest: &WalkDigest,
    remote: usize,
) -> Result<usize, HandlerError> {
    let Some(cursor) = cursor else { return Ok(0) };
    if cursor.digest != *digest && !planted(Mutant::RecheckKeepsCursor) {
        return Ok(0);
    }
    match usize::try_from(cursor.position) {
        Ok(position) if position <= remote => Ok(position),
        _ => Err(HandlerError::new(format!(
            "the cursor stands behind {} dependencies, there are {remote}",
            cursor.position
        ))),
    }
}

/// The record and its state are as the walk saw them, and it was just now.
fn guarded(walk: &Walk, now_ms: u64) -> Batch {
    let until_ms = now_ms.saturating_add(COMMIT_WITHIN_MS);
    let GatedRecord { key, value, state } = &walk.record;
    let batch = Batch::new()
        .require(Precondition::NotAfter(until_ms))
        .require_equals(key.clone(), value.clone());
    state.iter().fold(batch, |batch, (key, row)| {
        batch.require_unchanged(key.clone(), row.clone())
    })
}

/// The release with its guards. The local dependencies are guarded too if all of them find room.
fn released(walk: &Walk, now_ms: u64, release: Batch, seen: LocalSeen) -> Batch {
    let mut batch = guarded(walk, now_ms);
    let ops = batch.ops() + release.ops() + seen.guards.len();
    let bytes = batch.bytes() + release.bytes() + seen.bytes;
    if ops <= HANDLER_OPS_MAX && bytes <= BATCH_BYTES_MAX / 2 {
        batch.preconditions.extend(seen.guards);
    }
    batch.append(release)
}

impl DetachedHandler for PublicationRecheck {
    type Output = Walked;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Walked, HandlerError>> {
        Box::pin(self.walk(ctx, timer))
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        walked: &'a Walked,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            match &walked.0 {
                Some(walk) => self.plan(ctx, timer, walk).await,
                None => Ok(drained()),
            }
        })
    }

    fn retry_policy(&self, timer: &DueTimer) -> Option<RetryPolicy> {
        let is_malformed = WalkCursor::of_payload(timer.payload()).is_err();
        is_malformed.then(RetryPolicy::default)
    }
}

use std::fmt;
use std::sync::Arc;

use super::LEASE_SWEEP;
use super::lease::{Lease, LeaseName};
use super::planners::vacate;
use super::rows::{HeldRow, LeaseRows};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::kinds::observed::Observed;
use crate::kinds::owner::{Turn, drained, later, later_due_ms, retry_for_ever, turn};
use crate::mutants::{Mutant, planted};
use crate::store::{Batch, Partition, Precondition, Value};
use crate::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, TimerCtx, TimerKind,
};

/// What the source says of the holder's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Nothing is left: the lease may go.
    Drained,
    /// Something is left: the lease is kept and the source asked again later.
    Working {
        /// How far the work has come, in units of the source's own. The lease keeps the highest.
        watermark: u64,
    },
    /// There is no such source, now: the lease is kept, and asked for again after a back-off.
    Missing,
}

/// Says whether the work of an expired holder has drained. It may call out.
pub trait LeaseSource: MaybeSendSync + 'static {
    /// Asked once the lease has expired. An `Err` (the source cannot be reached, its answer makes no
    /// sense) keeps the lease; it is asked again after a back-off.
    fn drain<'a>(
        &'a self,
        partition: &'a Partition,
        lease: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>>;

    /// A lease was kept this long past its expiry because work is left: for a metric. Called once with
    /// each answer that keeps it, from [`LeaseSweep::warn_after_ms`] on, beside a warning in the log.
    fn kept_long(&self, partition: &Partition, lease: &Lease, overdue_ms: u64) {
        let _ = (partition, lease, overdue_ms);
    }
}

/// The source of leases whose holders leave nothing behind: they go as soon as they expire.
#[derive(Clone, Copy, Debug, Default)]
pub struct NothingToDrain;

impl LeaseSource for NothingToDrain {
    fn drain<'a>(
        &'a self,
        _: &'a Partition,
        _: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>> {
        Box::pin(std::future::ready(Ok(Drain::Drained)))
    }
}

/// How leases are swept: to be registered under [`LEASE_SWEEP`].
#[must_use = "it sweeps nothing until it is registered"]
pub struct LeaseSweep {
    source: Arc<dyn LeaseSource>,
    recheck_ms: u64,
    warn_after_ms: u64,
}

impl LeaseSweep {
    /// A sweep that asks this source.
    pub fn new(source: impl LeaseSource) -> Self {
        Self {
            source: Arc::new(source),
            recheck_ms: 10_000,
            warn_after_ms: 60_000,
        }
    }

    /// How long after an answer that keeps a lease the source is asked again, in milliseconds, at least
    /// 1. Default: 10 s.
    pub fn recheck_ms(mut self, recheck_ms: u64) -> Self {
        self.recheck_ms = recheck_ms.max(1);
        self
    }

    /// How long past its expiry a lease may be kept before it is warned of, in milliseconds. Default:
    /// 60 s.
    pub fn warn_after_ms(mut self, warn_after_ms: u64) -> Self {
        self.warn_after_ms = warn_after_ms;
        self
    }

    /// The registration: up to 16 calls at a time, 30 s each; failures are retried for ever, after 5 s at
    /// first and 60 s at most, so that no lease is held for ever because its timer died.
    pub fn registration(self) -> Registration {
        Registration::detached(Sweep(self)).retry(retry_for_ever())
    }

    /// The registration with its kind, as a registry takes it.
    pub fn entry(self) -> (TimerKind, Registration) {
        (LEASE_SWEEP, self.registration())
    }

    fn warn_if_kept_long(&self, partition: &Partition, lease: &Lease, now_ms: u64) {
        let overdue_ms = now_ms.saturating_sub(lease.expires_at_ms);
        if overdue_ms <= self.warn_after_ms {
            return;
        }
        tracing::warn!(
            %partition,
            name = %lease.name.as_bytes().escape_ascii(),
            owner = %lease.owner.as_bytes().escape_ascii(),
            epoch = lease.epoch,
            overdue_ms,
            "an expired lease is kept: work of its holder is left"
        );
        self.source.kept_long(partition, lease, overdue_ms);
    }

    /// The batch of a lease whose time has come and whose source has answered.
    fn settle_asked(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        rows: &LeaseRows,
        held: &HeldRow,
        drain: Drain,
    ) -> Fired {
        match drain {
            Drain::Drained if planted(Mutant::LeaseSweepUnguarded) => {
                let mut batch = vacate(rows, held);
                batch.preconditions.clear();
                Fired::Done(batch)
            }
            Drain::Drained => {
                // The handler's clock may be ahead of the store's, by which leases expire.
                let expired = Precondition::NotBefore(held.expires_at_ms);
                Fired::Done(vacate(rows, held).require(expired))
            }
            Drain::Working { watermark } => {
                let watermark = if planted(Mutant::LeaseWatermarkFalls) {
                    watermark
                } else {
                    held.watermark.max(watermark)
                };
                let due_at_ms = ctx.now_ms().saturating_add(self.recheck_ms);
                let kept = HeldRow {
                    watermark,
                    ..held.clone()
                };
                wait(timer, rows, kept, due_at_ms)
            }
            Drain::Missing => Fired::Retry {
                after_ms: None,
                reason: "the source of the lease is missing".to_owned(),
            },
        }
    }
}

impl fmt::Debug for LeaseSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseSweep")
            .field("recheck_ms", &self.recheck_ms)
            .field("warn_after_ms", &self.warn_after_ms)
            .finish_non_exhaustive()
    }
}

/// The same timer later, and the row waits for it.
fn wait(timer: &DueTimer, rows: &LeaseRows, mut held: HeldRow, due_at_ms: u64) -> Fired {
    held.sweep_due_ms = later_due_ms(timer, due_at_ms);
    let batch = rows.held.replace(Batch::new(), Some(&held));
    later(timer, held.sweep_due_ms, batch)
}

/// What the source said, and the row of which it was asked.
struct Asked {
    row: Option<Value>,
    drain: Drain,
}

/// The handler.
struct Sweep(LeaseSweep);

impl DetachedHandler for Sweep {
    /// `None` if there was nothing to ask.
    type Output = Option<Asked>;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Option<Asked>, HandlerError>> {
        Box::pin(async move {
            let Some(name) = name_of(ctx, timer) else {
                return Ok(None);
            };
            let key = HeldRow::key(&name);
            let observed = Observed::<HeldRow>::read(ctx.reads(), ctx.partition(), key).await?;
            let Some(held) = &observed.row else {
                return Ok(None);
            };
            if turn_of(ctx, timer, held) != Turn::Due {
                return Ok(None);
            }
            let lease = Lease::of(&name, held)?;
            let drain = if planted(Mutant::LeaseSourceNotAsked) {
                Drain::Drained
            } else {
                self.0.source.drain(ctx.partition(), &lease).await?
            };
            if matches!(drain, Drain::Working { .. }) {
                self.0
                    .warn_if_kept_long(ctx.partition(), &lease, ctx.now_ms());
            }
            Ok(Some(Asked {
                row: observed.bytes,
                drain,
            }))
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        output: &'a Option<Asked>,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let Ok(name) = LeaseName::new(timer.reference().clone()) else {
                return Ok(drained());
            };
            let rows = LeaseRows::read(ctx.reads(), ctx.partition(), &name).await?;
            let Some(held) = &rows.held.row else {
                return Ok(drained());
            };
            Ok(match (turn_of(ctx, timer, held), output) {
                (Turn::Stale, _) => drained(),
                (Turn::Early, _) => wait(timer, &rows, held.clone(), held.expires_at_ms),
                (Turn::Due, Some(asked)) if asked.row == rows.held.bytes => {
                    self.0.settle_asked(ctx, timer, &rows, held, asked.drain)
                }
                // Not asked of this row: it was early a moment ago, or has changed since.
                (Turn::Due, _) => wait(timer, &rows, held.clone(), ctx.now_ms()),
            })
        })
    }
}

fn turn_of(ctx: &TimerCtx<'_>, timer: &DueTimer, held: &HeldRow) -> Turn {
    turn(timer, ctx.now_ms(), held.sweep_due_ms, held.expires_at_ms)
}

/// The lease that a timer is for. A reference that names none is a timer that nobody here has made.
fn name_of(ctx: &TimerCtx<'_>, timer: &DueTimer) -> Option<LeaseName> {
    let name = LeaseName::new(timer.reference().clone());
    if let Err(error) = &name {
        tracing::warn!(partition = %ctx.partition(), %error, "a timer of no lease drains");
    }
    name.ok()
}

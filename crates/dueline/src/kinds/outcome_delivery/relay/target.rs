//! Applying the outcomes for one target.

use std::time::Duration;

use bytes::BufMut;

use crate::future::or_deadline;
use crate::kinds::fuzzing::Form;
use crate::kinds::observed::Observed;
use crate::kinds::outcome_delivery::{OUTCOME_DELIVERY, OutboxName};
use crate::kinds::row::{Row, Table};
use crate::limits::{BATCH_BYTES_MAX, BATCH_OPS_MAX, KEY_BYTES_MAX};
use crate::mutants::{Mutant, planted};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::runtime::Runtime;
use crate::store::{Batch, BatchOutcome, Key, NamespaceStore, Partition, StoreErrorKind, Write};
use crate::timers::HandlerError;

/// How far a target has absorbed an outbox: `62 00 08 68`, length and bytes of the source partition, name
/// of the outbox. It stays for ever.
const WATERMARK: Table = Table::new(OUTCOME_DELIVERY, b'h');

/// For the fuzz targets.
pub(in super::super) const WATERMARK_FORM: Form = Form::row::<Watermark>(WATERMARK);

/// Most batches that one run applies to one target.
const BATCHES_MAX: usize = 2;
/// Most operations of the outcomes in one batch: the watermark is guarded and put.
const OPS_MAX: usize = BATCH_OPS_MAX - 2;
/// Most bytes of the outcomes in one batch.
const BYTES_MAX: usize = BATCH_BYTES_MAX - 2 * (KEY_BYTES_MAX + 64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watermark {
    /// The last sequence that was applied.
    sequence: u64,
}

impl Row for Watermark {
    const WHAT: &'static str = "the watermark of a relay";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.sequence);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let sequence = reader.u64()?;
        reader.end()?;
        Ok(Self { sequence })
    }
}

/// An outcome for a target.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) sequence: u64,
    /// What it counts for in the backlog.
    pub(super) bytes: usize,
    pub(super) writes: Vec<Write>,
}

/// What came of the outcomes for one target.
pub(super) struct TargetEnd {
    /// How many of them, from the first on, the target has absorbed.
    pub(super) absorbed: usize,
    /// Why the next was not, if it was tried.
    pub(super) error: Option<HandlerError>,
}

/// One target of one run.
pub(super) struct Target<'a> {
    pub(super) store: &'a dyn NamespaceStore,
    pub(super) runtime: &'a Runtime,
    pub(super) deadline: Duration,
    pub(super) partition: &'a Partition,
    watermark: Key,
    /// The last sequence of the outbox: no watermark is beyond it.
    last_sequence: u64,
    reread: bool,
}

impl<'a> Target<'a> {
    pub(super) fn new(
        store: &'a dyn NamespaceStore,
        (runtime, deadline): (&'a Runtime, Duration),
        (source, outbox, last_sequence): (&Partition, &OutboxName, u64),
        partition: &'a Partition,
    ) -> Self {
        let source = source.as_bytes();
        let len = u16::try_from(source.len()).unwrap_or(u16::MAX);
        Self {
            store,
            runtime,
            deadline,
            partition,
            watermark: WATERMARK.key(&[&len.to_be_bytes(), source, outbox.as_bytes()]),
            last_sequence,
            reread: false,
        }
    }

    /// Applies outcomes in their order, as many as two batches take; those that are at or below the
    /// watermark were applied before.
    pub(super) async fn absorb(mut self, items: &[Item]) -> TargetEnd {
        let mut absorbed = 0;
        let error = self.try_absorb(items, &mut absorbed).await.err();
        TargetEnd { absorbed, error }
    }

    async fn try_absorb(
        &mut self,
        items: &[Item],
        absorbed: &mut usize,
    ) -> Result<(), HandlerError> {
        let mut mark = self.read().await?;
        let mut batches = 0;
        while let Some(rest) = items.get(*absorbed..)
            && let Some(first) = rest.first()
        {
            let last = mark.row.map_or(0, |mark| mark.sequence);
            if first.sequence <= last && !planted(Mutant::RelayForgetsWatermark) {
                *absorbed += 1;
                continue;
            }
            if batches == BATCHES_MAX {
                return Ok(());
            }
            batches += 1;
            let (count, batch, next) = self.batch(&mark, rest);
            if self.apply(batch).await? {
                *absorbed += count;
                mark = next;
            } else {
                mark = self.read().await?;
            }
        }
        Ok(())
    }

    /// As many outcomes as one batch takes, at least one, and the watermark behind them.
    fn batch(
        &self,
        mark: &Observed<Watermark>,
        rest: &[Item],
    ) -> (usize, Batch, Observed<Watermark>) {
        let (mut count, mut last) = (0, 0);
        let mut effects = Batch::new();
        for item in rest {
            let more = Batch {
                writes: item.writes.clone(),
                ..Batch::new()
            };
            let is_full =
                effects.ops() + more.ops() > OPS_MAX || effects.bytes() + more.bytes() > BYTES_MAX;
            if count > 0 && is_full {
                break;
            }
            (count, last) = (count + 1, item.sequence);
            effects = effects.append(more);
        }
        let next = Watermark { sequence: last };
        let batch = mark.replace(Batch::new(), Some(&next)).append(effects);
        let observed = Observed {
            key: mark.key.clone(),
            bytes: Some(next.encode()),
            row: Some(next),
        };
        (count, batch, observed)
    }

    async fn read(&self) -> Result<Observed<Watermark>, HandlerError> {
        let read = Observed::read(self.store, self.partition, self.watermark.clone());
        let mark: Observed<Watermark> = self.within(async { Ok(read.await?) }).await?;
        // Taken at its word it would swallow every message up to it: its target waits instead.
        let is_beyond = mark
            .row
            .is_some_and(|mark| mark.sequence > self.last_sequence);
        if is_beyond && !planted(Mutant::RelayTrustsWatermark) {
            return Err(HandlerError::new(
                "the watermark is beyond the last outcome of its outbox",
            ));
        }
        Ok(mark)
    }

    /// Applies a batch: true if it is there, false if the watermark has moved and is to be read again,
    /// which is done once.
    async fn apply(&mut self, batch: Batch) -> Result<bool, HandlerError> {
        let apply = self.store.apply(self.partition, batch);
        let outcome = self.within(async { Ok(apply.await) }).await?;
        let lost = match outcome {
            Ok(BatchOutcome::Committed) => return Ok(true),
            Ok(_) => HandlerError::new("the watermark of the target has moved"),
            Err(error) if error.kind() == StoreErrorKind::Unknown => error.into(),
            Err(error) => return Err(error.into()),
        };
        if std::mem::replace(&mut self.reread, true) {
            return Err(lost);
        }
        Ok(false)
    }

    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, HandlerError>>,
    ) -> Result<T, HandlerError> {
        let sleep = || self.runtime.sleep(self.deadline);
        or_deadline(call, sleep, self.deadline).await
    }
}

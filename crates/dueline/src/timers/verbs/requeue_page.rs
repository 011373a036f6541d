use super::dead::next_id;
use super::moves::Move;
use super::requeue::{DeadRead, name_of, plan};
use super::{DeadId, Scheduled};
use crate::rows::{DeadKey, DeadReason, DeadRow, TimerRow};
use crate::store::{Batch, Key, Partition, ScanPage, Value};
use crate::timers::{TimerError, TimerKind, Timers};

/// What one step of a requeue in bulk did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequeuedPage {
    /// The timers that live again, in the order of their death.
    pub requeued: Vec<(DeadId, Scheduled)>,
    /// Dead timers of the page that stay dead: their rows do not decode, or they were not asked
    /// for.
    pub left: usize,
    /// Where to go on; `None` at the end. A page may be empty and still carry it.
    pub next: Option<DeadId>,
}

/// Dead rows that are read and moved at a time: bounds what lies in memory.
const CHUNK_ROWS: usize = 64;

impl Timers {
    /// Requeues one page of dead timers, of one kind or of all, behind the one given, at most
    /// `limit` and 64 of them, as [`requeue`](Self::requeue) does each. They commit together where
    /// nobody interferes.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or an id of another kind; what the store says. Those requeued
    /// before the error stay so; go on from the same place.
    pub async fn requeue_page(
        &self,
        partition: &Partition,
        kind: Option<TimerKind>,
        after: Option<&DeadId>,
        limit: usize,
    ) -> Result<RequeuedPage, TimerError> {
        let page = self
            .scan_dead(partition, kind, after, limit.min(CHUNK_ROWS))
            .await?;
        self.requeue_rows(partition, page, |_| true).await
    }

    /// Requeues what a codec below this version could not decode, and what this binary's row format
    /// can read again: what the engine does when a handler registers with a higher version. A page
    /// looks at up to `limit` and 64 dead timers of the kind and leaves the others.
    ///
    /// # Errors
    /// As [`requeue_page`](Self::requeue_page).
    pub async fn requeue_undecodable(
        &self,
        partition: &Partition,
        kind: TimerKind,
        codec_version: u16,
        after: Option<&DeadId>,
        limit: usize,
    ) -> Result<RequeuedPage, TimerError> {
        let page = self
            .scan_dead(partition, Some(kind), after, limit.min(CHUNK_ROWS))
            .await?;
        self.requeue_rows(partition, page, |row| match row.reason {
            DeadReason::UndecodablePayload => row.codec_version < codec_version,
            DeadReason::UndecodableHeader => TimerRow::decode(&row.payload).is_ok(),
            DeadReason::Exhausted | DeadReason::Handler => false,
        })
        .await
    }

    async fn requeue_rows(
        &self,
        partition: &Partition,
        page: ScanPage,
        wanted: impl Fn(&DeadRow) -> bool,
    ) -> Result<RequeuedPage, TimerError> {
        let mut done = RequeuedPage {
            next: next_id(&page),
            ..RequeuedPage::default()
        };
        let found = page.rows.len();
        let rows = page
            .rows
            .into_iter()
            .filter(|(_, value)| DeadRow::decode(value).is_ok_and(|row| wanted(&row)))
            .collect();
        let planned = self.plan_moves(partition, rows).await?;
        let mut moves = planned.as_slice();
        while !moves.is_empty() {
            let batches: Vec<Batch> = moves.iter().map(|(_, planned)| planned.batch()).collect();
            let group = self.store().apply_all(partition, batches.into()).await;
            let (written, rest) = moves.split_at(group.committed().min(moves.len()));
            for (id, planned) in written {
                done.requeued.push((id.clone(), planned.scheduled()));
            }
            if let Some(error) = group.stopped_by {
                return Err(error.into());
            }
            moves = rest;
            // The first of the rest lost a guard: it goes alone, and the group goes on behind it.
            if let Some(((id, _), rest)) = rest.split_first() {
                if let Some(scheduled) = self.requeue(partition, id).await? {
                    done.requeued.push((id.clone(), scheduled));
                }
                moves = rest;
            }
        }
        done.left = found.saturating_sub(done.requeued.len());
        Ok(done)
    }

    async fn plan_moves(
        &self,
        partition: &Partition,
        rows: Vec<(Key, Value)>,
    ) -> Result<Vec<(DeadId, Move)>, TimerError> {
        let rows: Vec<(DeadKey, Value)> = rows
            .into_iter()
            .filter_map(|(key, value)| Some((DeadKey::decode(&key).ok()?, value)))
            .collect();
        let names: Vec<Key> = rows.iter().map(|(key, _)| name_of(key).encode()).collect();
        let name_values = self.store().get_many(partition, &names).await?;
        let now_ms = self.runtime().now_ms();
        let mut moves = Vec::with_capacity(rows.len());
        for ((key, value), name_value) in rows.into_iter().zip(name_values) {
            let id = DeadId::of(&key);
            match DeadRead::new(key, value, name_value).and_then(|dead| plan(dead, now_ms)) {
                Ok(planned) => moves.push((id, planned)),
                Err(error) => {
                    tracing::warn!(%partition, %id, %error, "a dead timer cannot be requeued");
                }
            }
        }
        Ok(moves)
    }
}

use bytes::Bytes;

use super::list::{CHUNK_ROWS, PAGE_BYTES, page_limit};
use super::named::name_key;
use super::{DeadId, DeadPage, DeadView};
use crate::rows::{DeadKey, class, class_end, class_start};
use crate::store::{Cursor, Partition, ScanPage, ScanRange};
use crate::timers::{TimerError, TimerKind, Timers};

impl Timers {
    /// One page of dead timers, of one kind or of all, behind the one given, at most `limit` and
    /// 1,000 of them. A page of large payloads may be shorter and still carry `next`.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or an id of another kind; what the store says.
    pub async fn dead(
        &self,
        partition: &Partition,
        kind: Option<TimerKind>,
        after: Option<&DeadId>,
        limit: usize,
    ) -> Result<DeadPage, TimerError> {
        let limit = page_limit(limit)?;
        let mut found = DeadPage::default();
        let mut place = after.cloned();
        let mut bytes = 0;
        loop {
            let wanted = limit.saturating_sub(found.dead.len()).min(CHUNK_ROWS);
            let page = self
                .scan_dead(partition, kind, place.as_ref(), wanted)
                .await?;
            for (key, value) in &page.rows {
                bytes += value.len();
                match DeadKey::decode(key) {
                    Ok(key) => found.dead.push(DeadView::read(key, value)),
                    Err(error) => {
                        tracing::warn!(%partition, %error, "a key of the dead class does not decode");
                    }
                }
            }
            place = next_id(&page);
            if place.is_none() || found.dead.len() >= limit || bytes >= PAGE_BYTES {
                found.next = place;
                return Ok(found);
            }
        }
    }

    /// The dead timer of this name, with the id to requeue or purge it by; `None` if there is no
    /// timer of that name or it is not dead.
    ///
    /// # Errors
    /// `Invalid` for kind 0 or a reference over 512 bytes, `Contended`, and what the store says.
    pub async fn dead_by_name(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
    ) -> Result<Option<DeadView>, TimerError> {
        let name = name_key(kind, reference)?;
        let found = self.read_named(partition, &name).await?;
        Ok(found.and_then(|(entry, value)| {
            let key = DeadKey::decode(&entry.target()).ok()?;
            Some(DeadView::read(key, &value))
        }))
    }

    pub(super) async fn scan_dead(
        &self,
        partition: &Partition,
        kind: Option<TimerKind>,
        after: Option<&DeadId>,
        limit: usize,
    ) -> Result<ScanPage, TimerError> {
        let limit = page_limit(limit)?;
        let range = match kind {
            Some(kind) => ScanRange::new(DeadKey::lane_start(kind), DeadKey::lane_end(kind), limit),
            None => ScanRange::new(class_start(class::DEAD), class_end(class::DEAD), limit),
        };
        let range = range.after(after.map(|id| Cursor::behind(id.key().clone())));
        Ok(self.store().scan(partition, &range).await?)
    }
}

/// Where the page behind this one begins.
pub(super) fn next_id(page: &ScanPage) -> Option<DeadId> {
    page.next
        .as_ref()
        .map(|cursor| DeadId::behind(cursor.position()))
}

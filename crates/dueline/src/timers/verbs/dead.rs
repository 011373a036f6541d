use super::list::page_limit;
use super::{DeadId, DeadPage, DeadView};
use crate::rows::{DeadKey, class, class_end, class_start};
use crate::store::{Cursor, Partition, ScanPage, ScanRange};
use crate::timers::{TimerError, TimerKind, Timers};

impl Timers {
    /// One page of dead timers, of one kind or of all, behind the one given, at most `limit` and
    /// 1,000 of them.
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
        let page = self.scan_dead(partition, kind, after, limit).await?;
        let dead = page
            .rows
            .iter()
            .filter_map(|(key, value)| match DeadKey::decode(key) {
                Ok(key) => Some(DeadView::read(key, value)),
                Err(error) => {
                    tracing::warn!(%partition, %error, "a key of the dead class does not decode");
                    None
                }
            })
            .collect();
        Ok(DeadPage {
            dead,
            next: next_id(&page),
        })
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

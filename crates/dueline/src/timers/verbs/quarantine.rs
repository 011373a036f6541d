use super::list::page_limit;
use crate::rows::{QuarantineKey, class, class_end, class_start};
use crate::store::{Cursor, Key, Partition, ScanRange, Value};
use crate::timers::{TimerError, Timers};

/// A row whose key did not decode, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// The key under which it was found.
    pub key: Key,
    /// The value, byte for byte.
    pub value: Value,
}

/// Rows set aside, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarantinedPage {
    /// The rows set aside, in the order of their keys.
    pub rows: Vec<QuarantinedRow>,
    /// Where to go on; `None` at the end.
    pub next: Option<Key>,
}

impl Timers {
    /// One page of the rows that were set aside because their keys did not decode, behind the
    /// original key given, at most `limit` and 1,000 of them.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0; what the store says.
    pub async fn quarantined(
        &self,
        partition: &Partition,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<QuarantinedPage, TimerError> {
        let (start, end) = (class_start(class::QUARANTINE), class_end(class::QUARANTINE));
        let range = ScanRange::new(start, end, page_limit(limit)?)
            .after(after.map(|key| Cursor::behind(QuarantineKey::of(key).encode())));
        let page = self.store().scan(partition, &range).await?;
        let original = |key: &Key| QuarantineKey::decode(key).ok().map(|key| key.original());
        Ok(QuarantinedPage {
            rows: page
                .rows
                .into_iter()
                .filter_map(|(key, value)| original(&key).map(|key| QuarantinedRow { key, value }))
                .collect(),
            next: page.next.and_then(|cursor| original(cursor.position())),
        })
    }
}

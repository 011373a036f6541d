use bytes::Bytes;

use super::TimerView;
use super::named::name_key;
use crate::store::Partition;
use crate::timers::{TimerError, TimerKind, Timers};

impl Timers {
    /// The named timer of this kind and reference, dead ones included; `None` if there is none (it
    /// never was, has fired, or was cancelled). Anonymous timers are found by
    /// [`list`](Self::list) alone.
    ///
    /// # Errors
    /// `Invalid` for kind 0 or a reference over 512 bytes, `Contended`, and what the store says.
    pub async fn get(
        &self,
        partition: &Partition,
        kind: TimerKind,
        reference: &Bytes,
    ) -> Result<Option<TimerView>, TimerError> {
        let name = name_key(kind, reference)?;
        let Some((entry, value)) = self.read_named(partition, &name).await? else {
            return Ok(None);
        };
        let view = TimerView::read(&entry.target(), &value);
        Ok(view.map(|view| view.under_name(entry.state())))
    }
}

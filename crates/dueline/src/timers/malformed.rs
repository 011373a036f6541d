//! Rows that do not decode: keys go to quarantine, headers to the dead class, bytes unchanged.

use std::time::Duration;

use super::lane::{DueRow, PAGE_ROWS};
use super::moves::{Move, NameGuard, name_key, quarantine_batch};
use super::planned::{Effect, Planned};
use super::tick::TickRun;
use super::{DueTimer, RetryPolicy};
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::rows::{
    DeadReason, Failure, Flags, Header, Malformed, NameKey, NameRow, QuarantineKey, TimerKey,
    TimerRow,
};
use crate::store::{Batch, BatchOutcome, StoreError};

/// How often a row that is set aside looks for another place in one tick.
const PLACES_MAX: u8 = 8;

impl TickRun<'_> {
    /// Moves a key of the timer class that does not decode to quarantine, byte for byte.
    pub(super) async fn set_aside(&mut self, row: DueRow, malformed: Malformed) {
        tracing::error!(
            partition = %self.partition,
            key = %row.key.escape_ascii(),
            %malformed,
            "a malformed timer row is set aside"
        );
        let place = match self.free_place(&row).await {
            Ok(place) => place,
            Err(error) => return self.hold(&row, &error),
        };
        let planned = Planned {
            batch: quarantine_batch(&row.key, &row.value, &place),
            effect: Effect::Quarantined,
            own_guards: 1,
            to: None,
        };
        self.stage(row, planned, PAGE_ROWS, Duration::ZERO).await;
    }

    /// Where a malformed row can be set aside: under its own bytes, or, if a row of the same bytes
    /// was set aside before, with a number behind them.
    async fn free_place(&self, row: &DueRow) -> Result<QuarantineKey, StoreError> {
        let plain = QuarantineKey::of(&row.key);
        let mut place = plain.clone();
        for number in 1..=u8::MAX {
            if self
                .store
                .get(self.partition, &place.encode())
                .await?
                .is_none()
            {
                return Ok(place);
            }
            let room = KEY_BYTES_MAX.saturating_sub(3);
            let mut bytes = plain
                .malformed
                .slice(..plain.malformed.len().min(room))
                .to_vec();
            bytes.push(number);
            place = QuarantineKey {
                malformed: bytes.into(),
            };
        }
        Err(StoreError::full(
            "255 malformed rows of the same key are set aside already",
        ))
    }

    /// A batch that sets a row aside lost: the row changed, or its name or its place did.
    pub(super) fn lost_malformed(&mut self, mut row: DueRow, outcome: &BatchOutcome) {
        match outcome {
            BatchOutcome::PreconditionFailed { index: 0, .. } => self.raced(&row),
            _ if row.replans < PLACES_MAX => {
                row.replans += 1;
                self.push_front(row);
            }
            _ => {
                let error = StoreError::unavailable("a row found its place taken each time");
                self.hold(&row, &error);
            }
        }
    }

    /// A header that does not decode: to the dead class with its whole value as payload, or to
    /// quarantine if that does not fit.
    pub(super) async fn bury_undecodable(
        &mut self,
        key: TimerKey,
        row: DueRow,
        malformed: Malformed,
    ) {
        let now_ms = self.engine.runtime().now_ms();
        let value = TimerRow {
            header: Header {
                original_due_ms: key.due_ms,
                ..Header::default()
            },
            payload: row.value.clone(),
        };
        let anonymous = DueTimer::new(key.clone(), value.clone(), now_ms);
        let found = match self.store.get(self.partition, &name_key(&anonymous)).await {
            Ok(found) => found,
            Err(error) => return self.hold(&row, &error),
        };
        let name = NameKey {
            kind: key.kind,
            reference: key.reference.clone(),
        };
        let named = found.as_ref().is_some_and(|found| {
            NameRow::decode(found).is_ok_and(|found| found.target(&name) == row.key)
        });
        let header = Header {
            flags: Flags {
                named,
                ..Flags::default()
            },
            ..value.header
        };
        let timer = DueTimer::new(
            key,
            TimerRow {
                header,
                payload: value.payload,
            },
            now_ms,
        );
        let failure = Failure::new(now_ms, &format!("the header does not decode: {malformed}"));
        let mut to = Move::dead(&timer, DeadReason::UndecodableHeader, 0, 0, failure);
        for _ in 0..row.replans {
            to = to.one_later();
        }
        if to.row(&timer).1.len() > VALUE_BYTES_MAX {
            return self.set_aside(row, malformed).await;
        }
        tracing::error!(
            partition = %self.partition,
            kind = %timer.kind(),
            reference = %timer.reference().escape_ascii(),
            %malformed,
            "a timer's header does not decode; the timer is dead, its bytes unchanged"
        );
        let mut planning = self.planning(&row, &timer, RetryPolicy::default(), Vec::new());
        planning.name = NameGuard::found(&timer, found);
        let planned = planning.moved(&timer, to, Effect::Dead, Batch::new());
        self.stage(
            row,
            Planned {
                to: None,
                ..planned
            },
            PAGE_ROWS,
            Duration::ZERO,
        )
        .await;
    }
}

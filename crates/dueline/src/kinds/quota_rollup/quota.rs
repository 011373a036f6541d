use bytes::Bytes;

use super::QUOTA_ROLLUP;
use super::job::{Job, Phase};
use super::rows::{Place, QUOTA_NAME_BYTES_MAX};
use super::window::Window;
use crate::kinds::row::Row;
use crate::mutants::{Mutant, planted};
use crate::store::{Partition, StoreError};
use crate::timers::{OccurrenceId, Timer};

/// Default time between two roll-ups of a shard, in milliseconds.
pub const PERIOD_MS: u64 = 60_000;

/// A quota: its name, where its total is kept, how long its windows are.
///
/// All who charge it use the same. The coordinator and the period of a window are those of its first
/// charge on each shard; a change takes effect with the next window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    name: Bytes,
    coordinator: Partition,
    window_ms: u64,
    period_ms: u64,
}

impl Quota {
    /// A quota whose total is kept in the partition `coordinator`, counted anew every `window_ms`
    /// milliseconds. The name has 1 to 64 bytes and tells quotas of one partition apart.
    ///
    /// # Errors
    /// `Invalid` for a name or a window of another length.
    pub fn new(
        name: impl Into<Bytes>,
        coordinator: Partition,
        window_ms: u64,
    ) -> Result<Self, StoreError> {
        let name = name.into();
        if name.is_empty() || name.len() > QUOTA_NAME_BYTES_MAX {
            return Err(StoreError::invalid(format!(
                "the name of a quota has 1 to {QUOTA_NAME_BYTES_MAX} bytes, this one has {}",
                name.len()
            )));
        }
        Window::check_length(window_ms)?;
        Ok(Self {
            name,
            coordinator,
            window_ms,
            period_ms: PERIOD_MS,
        })
    }

    /// How long after one roll-up a shard has its next, in milliseconds, at least 1; 60,000 if it is not
    /// said. The bound of overshoot is what the other shards admit in three of them.
    #[must_use]
    pub fn period_ms(mut self, period_ms: u64) -> Self {
        self.period_ms = period_ms.max(1);
        self
    }

    /// Where the total is kept.
    pub fn coordinator(&self) -> &Partition {
        &self.coordinator
    }

    /// The window that holds a moment, in milliseconds since 1970.
    pub fn window_at(&self, now_ms: u64) -> Window {
        Window::holding(now_ms, self.window_ms)
    }

    /// Whether a view of this age, ahead of now or behind it, says too little.
    pub(super) fn is_stale(&self, observed_at_ms: u64, now_ms: u64) -> bool {
        !planted(Mutant::StaleViewTrusted)
            && observed_at_ms.abs_diff(now_ms) > self.period_ms.saturating_mul(2)
    }

    pub(super) fn place(&self, window: Window) -> Place {
        Place {
            name: self.name.clone(),
            window,
        }
    }

    /// The first timer of a window in a partition.
    pub(super) fn first_timer(&self, place: &Place, partition: &Partition, now_ms: u64) -> Timer {
        let due_at_ms = if *partition == self.coordinator {
            place.window.closes_at_ms()
        } else {
            next_due_ms(place, partition, now_ms, self.period_ms)
        };
        let job = Job {
            phase: Phase::Rolling,
            period_ms: self.period_ms,
            coordinator: self.coordinator.clone(),
        };
        Timer::new(QUOTA_ROLLUP, place.reference())
            .due_at(due_at_ms)
            .payload(job.encode())
    }
}

/// Over how long the last roll-ups of the shards are spread, in milliseconds, or all would meet at the
/// coordinator at once. It is less than the time until the first of them leaves the total.
const SPREAD_MS: u64 = 30_000;

/// When a shard rolls up next: after a period, or for the last time when the window has closed.
pub(super) fn next_due_ms(
    place: &Place,
    partition: &Partition,
    now_ms: u64,
    period_ms: u64,
) -> u64 {
    let last_due_ms = last_due_ms(place, partition);
    let due_ms = now_ms.saturating_add(period_ms);
    // A roll-up that is due after the window's close is the last one, or is late already.
    if due_ms < place.window.closes_at_ms() || now_ms >= last_due_ms {
        due_ms
    } else {
        last_due_ms
    }
}

fn last_due_ms(place: &Place, partition: &Partition) -> u64 {
    let shard = OccurrenceId {
        partition: partition.clone(),
        kind: QUOTA_ROLLUP,
        reference: place.reference(),
        generation: 0,
    };
    let spread_ms = shard.hash64(0) % SPREAD_MS;
    place.window.closes_at_ms().saturating_add(spread_ms)
}

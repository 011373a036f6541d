//! What must hold of the alarm after every turn, since each may be the last durable one.

use dueline_worker::AlarmError;

use super::world::ObjectWorld;

/// How long a partition may be held back after the storage refused it, in milliseconds.
const HELD_MS: u64 = 61_000;
/// The same after turns that found nothing to do, as when a clock has been set back.
const FRUITLESS_MS: u64 = 1_000;
/// Enough to look at.
const BROKEN_MAX: usize = 4;

impl ObjectWorld<'_> {
    /// The earliest stored wake of the kinds that run here.
    pub(super) fn first_wake_ms(&self) -> Option<u64> {
        let first = self.object.storage().first_wake_ms(&self.kinds);
        first.unwrap_or_default()
    }

    /// Behind now, and behind the times that are or may be served.
    fn slack_ms(&self) -> u64 {
        let held_ms = if self.spec.has_faults() {
            HELD_MS
        } else {
            FRUITLESS_MS
        };
        held_ms + 15
    }

    /// The stored alarm is neither missing nor later than the earliest wake.
    pub(super) fn check_alarm(&mut self) {
        if self.is_excused || self.instance.is_none() || self.broken.len() >= BROKEN_MAX {
            return;
        }
        let Some(first_ms) = self.first_wake_ms() else {
            return;
        };
        let alarm_ms = self.object.storage().alarm_ms();
        let until_ms = first_ms.max(self.latest_ms).max(self.now_ms()) + self.slack_ms();
        if alarm_ms.is_none_or(|at_ms| at_ms > until_ms) {
            self.broken.push(format!(
                "the first wake is at {first_ms}, the stored alarm at {alarm_ms:?}, now {}",
                self.now_ms()
            ));
        }
    }

    /// With everything durable the platform has an alarm that is not later than the stored one.
    pub(super) fn check_scheduler(&mut self) {
        let is_settled = self.object.unsynced() == 0 && !self.object.is_serving();
        let is_excused = self.is_excused || self.object.waits_for_retry();
        let is_looked_at = !is_excused && self.instance.is_some();
        if !is_settled || !is_looked_at || self.broken.len() >= BROKEN_MAX {
            return;
        }
        let stored_ms = self.object.storage().alarm_ms();
        let (Some(stored_ms), Some(_)) = (stored_ms, self.first_wake_ms()) else {
            return;
        };
        let next_ms = self.object.next_alarm_ms();
        if next_ms.is_none_or(|next_ms| next_ms > stored_ms) {
            self.broken.push(format!(
                "the stored alarm is at {stored_ms}, the platform's at {next_ms:?}"
            ));
        }
    }

    /// A platform tries what was thrown again, and holds back what is set meanwhile: nothing that nobody
    /// waits for is worth that.
    pub(super) fn check_alarm_thrown(&mut self, error: &AlarmError) {
        self.check_thrown();
        let is_needless = matches!(error, AlarmError::Alarm(_)) && self.first_wake_ms().is_none();
        if is_needless && self.broken.len() < BROKEN_MAX {
            let text = format!("thrown, and nothing is pending: {error}");
            self.broken.push(text);
        }
    }

    /// Only what is wrong with the storage is thrown.
    pub(super) fn check_thrown(&mut self) {
        if (self.is_healed || !self.spec.has_faults()) && self.broken.len() < BROKEN_MAX {
            self.broken.push("an error without a fault".to_owned());
        }
    }
}

//! What must hold of the alarm after every turn, since each may be the last durable one.

use dueline::timers::KindSet;
use dueline_worker::AlarmError;

use super::world::ObjectWorld;

/// How long a partition may be held back after the storage refused it, in milliseconds.
const HELD_MS: u64 = 61_000;
/// The same after turns that found nothing to do, as when a clock has been set back.
const FRUITLESS_MS: u64 = 1_000;
/// How long the alarm for a kind without a handler may be off, in milliseconds.
const UNKNOWN_LOOK_MS: u64 = 3_600_000;
/// Enough to look at.
const BROKEN_MAX: usize = 4;

impl ObjectWorld<'_> {
    /// The earliest stored wake of the kinds that run here.
    pub(super) fn first_wake_ms(&self) -> Option<u64> {
        let first = self.object.storage().first_wake_ms(&self.kinds);
        first.unwrap_or_default()
    }

    /// The first wake that the alarm has to serve next, and when it has to come at the latest: in time for
    /// kinds that run here, within an hour for others.
    pub(super) fn wanted_alarm_ms(&self) -> Option<(u64, u64)> {
        let latest_ms = self.latest_ms.max(self.now_ms());
        let known = self
            .first_wake_ms()
            .map(|at_ms| (at_ms, at_ms.max(latest_ms)));
        let any = self.object.storage().first_wake_ms(&KindSet::all());
        let any = any
            .unwrap_or_default()
            .map(|at_ms| (at_ms, at_ms.max(latest_ms + UNKNOWN_LOOK_MS)));
        known
            .into_iter()
            .chain(any)
            .min_by_key(|(_, wanted_ms)| *wanted_ms)
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
        let Some((first_ms, wanted_ms)) = self.wanted_alarm_ms() else {
            return;
        };
        let alarm_ms = self.object.storage().alarm_ms();
        let until_ms = wanted_ms + self.slack_ms();
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
        let (Some(stored_ms), Some(_)) = (stored_ms, self.wanted_alarm_ms()) else {
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
        let is_needless = matches!(error, AlarmError::Alarm(_)) && self.wanted_alarm_ms().is_none();
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

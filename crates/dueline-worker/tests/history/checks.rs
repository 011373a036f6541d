//! What must hold: at every turn of the alarm, at every durable turn of the rows.

use dueline::timers::TimerKind;
use dueline_testkit::model::Source;
use dueline_worker::simulated::TurnRecord;

use super::run::{ENGINE, History};
use super::script::KINDS;

/// How long a partition may be held back after the storage refused it.
const HELD_MS: u64 = 61_000;
/// The same after turns that found nothing to do, as when a clock has been set back.
const FRUITLESS_MS: u64 = 1_000;
/// How long the alarm for a kind without a handler may be off.
const UNKNOWN_LOOK_MS: u64 = 3_600_000;

impl History {
    /// The earliest stored wake of the kinds that can run here.
    pub(super) fn first_wake_ms(&self) -> Option<u64> {
        let wakes = self.object.storage().wakes().unwrap();
        wakes
            .iter()
            .filter(|wake| KINDS.contains(&wake.kind) || wake.kind == TimerKind::INVALID)
            .map(|wake| wake.at_ms)
            .min()
    }

    /// The first wake that the alarm has to serve next, and when it has to come at the latest: in time for
    /// kinds that run here, within an hour for others.
    fn wanted_alarm_ms(&self) -> Option<(u64, u64)> {
        let latest_ms = self.latest_ms.max(self.now_ms());
        let wakes = self.object.storage().wakes().unwrap();
        let known = self
            .first_wake_ms()
            .map(|at_ms| (at_ms, at_ms.max(latest_ms)));
        let any = wakes
            .first()
            .map(|wake| (wake.at_ms, wake.at_ms.max(latest_ms + UNKNOWN_LOOK_MS)));
        known
            .into_iter()
            .chain(any)
            .min_by_key(|(_, wanted_ms)| *wanted_ms)
    }

    fn slack_ms(&self) -> u64 {
        let held_ms = if self.weather.has_storage_faults() {
            HELD_MS
        } else if self.weather.clock_steps || self.weather.early {
            FRUITLESS_MS
        } else {
            0
        };
        // Behind now, and behind the times that are or may be served.
        let says_when = self.weather.says_when && !self.weather.twice;
        held_ms + if says_when { 2 } else { 15 }
    }

    /// The stored alarm is neither missing nor later than the earliest wake: every turn may be the last
    /// durable one.
    pub(super) fn check_alarm(&mut self) {
        if self.is_excused || self.broken.len() > 3 {
            return;
        }
        let Some((first_ms, wanted_ms)) = self.wanted_alarm_ms() else {
            return;
        };
        let alarm_ms = self.object.storage().alarm_ms();
        let until_ms = wanted_ms + self.slack_ms();
        if alarm_ms.is_none_or(|at_ms| at_ms > until_ms) {
            self.broken.push(format!(
                "the first wake is at {first_ms}, the alarm at {alarm_ms:?}, now {}",
                self.now_ms()
            ));
        }
    }

    /// With everything durable the platform has an alarm that is not later than the stored one.
    pub(super) fn check_scheduler(&mut self) {
        let is_settled = self.object.unsynced() == 0 && !self.object.is_serving();
        if !is_settled || self.is_excused || self.is_retrying || self.broken.len() > 3 {
            return;
        }
        let (Some(stored_ms), Some(_)) = (self.object.storage().alarm_ms(), self.wanted_alarm_ms())
        else {
            return;
        };
        let next_ms = self.object.next_alarm_ms();
        if next_ms.is_none_or(|next_ms| next_ms > stored_ms) {
            self.broken.push(format!(
                "the stored alarm is at {stored_ms}, the platform's at {next_ms:?}"
            ));
        }
    }

    /// Shows durable turns to the ledger.
    pub(super) fn show(&mut self, records: Vec<TurnRecord>) {
        for record in records {
            let source = if record.actor == ENGINE {
                Source::Engine
            } else {
                Source::User
            };
            for (partition, batch) in &record.commits {
                self.ledger
                    .committed(source, partition, batch, record.now_ms);
            }
            for partition in &self.partitions {
                self.ledger
                    .check_wakes(partition, &record.wakes, record.now_ms);
            }
        }
    }
}

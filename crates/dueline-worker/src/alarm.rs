//! What is known of the alarm, and where it may be set.

use std::collections::VecDeque;

use crate::mutants::{Mutant, planted};

/// The alarm as this instance of the object knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownAlarm {
    /// Not read yet, or a write of it went wrong: whatever needs an alarm sets one.
    Unknown,
    /// None is set; or only that which is being served and goes when its handler ends.
    None,
    /// Set by this instance, or read from the platform.
    At(u64),
}

/// How many of the last alarms may be the one that is served, if the platform does not say.
const REMEMBERED: usize = 4;

/// The latest time at which an alarm is set, 2100-01-01T00:00:00Z: the platform refuses alarms behind the
/// year 2189. What is due later has an alarm on the way.
const ALARM_MS_MAX: u64 = 4_102_444_800_000;

/// How far ahead an alarm is set at the most once that time has come, in milliseconds: a year.
const AHEAD_MS_MAX: u64 = 31_536_000_000;

/// By how much an alarm may come before its time by the object's own clock, in milliseconds.
const EARLY_MS_MAX: u64 = 10;

/// An alarm that is this late without being served is taken for lost, in milliseconds.
pub(crate) const LOST_AFTER_MS: u64 = 1_000;

/// The alarm and what is served by it.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) known: KnownAlarm,
    /// Changes with every write of the alarm, so that who has awaited something can tell.
    pub(crate) version: u64,
    /// The last alarms that were set or read, the latest first.
    recent_ms: VecDeque<u64>,
    /// The time that is or may be served: never set again, the platform may take it for that one.
    served_ms: Vec<u64>,
    /// Whether nothing at all is known of the time that is served.
    is_blind: bool,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            known: KnownAlarm::Unknown,
            version: 0,
            recent_ms: VecDeque::new(),
            served_ms: Vec::new(),
            is_blind: false,
        }
    }

    /// An alarm is being served: it is spent, whatever was known of it.
    pub(crate) fn begin(&mut self, scheduled_at_ms: Option<u64>) {
        self.served_ms = match scheduled_at_ms {
            Some(at_ms) => vec![at_ms],
            None => self.recent_ms.iter().copied().collect(),
        };
        self.is_blind = self.served_ms.is_empty() && !planted(Mutant::AlarmBlindToEarly);
        self.note(KnownAlarm::None);
    }

    pub(crate) fn note(&mut self, known: KnownAlarm) {
        if let KnownAlarm::At(at_ms) = known {
            self.recent_ms.retain(|recent_ms| *recent_ms != at_ms);
            self.recent_ms.truncate(REMEMBERED - 1);
            self.recent_ms.push_front(at_ms);
        }
        self.known = known;
        self.version = self.version.wrapping_add(1);
    }

    /// Whether an alarm that was found at this time is or may be one that was served, which the platform
    /// does not bring again.
    pub(crate) fn was_served(&self, at_ms: u64) -> bool {
        self.served_ms.contains(&at_ms) && !planted(Mutant::AlarmServedTrusted)
    }

    /// Whether an alarm that was found at this time does not come any more.
    pub(crate) fn is_lost(&self, at_ms: u64, now_ms: u64) -> bool {
        at_ms.saturating_add(LOST_AFTER_MS) < now_ms || self.was_served(at_ms)
    }

    /// Whether the alarm that was found is the one that is known, and will come.
    pub(crate) fn is_as_known(&self, found: Option<u64>, now_ms: u64) -> bool {
        found.is_some_and(|at_ms| {
            self.known == KnownAlarm::At(at_ms) && !self.is_lost(at_ms, now_ms)
        })
    }

    /// Whether the alarm comes early enough for something due at this time.
    pub(crate) fn is_set_for(&self, due_ms: u64, now_ms: u64) -> bool {
        match self.known {
            KnownAlarm::At(at_ms) => at_ms <= self.place(due_ms, now_ms),
            KnownAlarm::Unknown | KnownAlarm::None => false,
        }
    }

    /// Where the alarm for something due at this time is set: in the future, and not at the time that
    /// is being served.
    pub(crate) fn place(&self, due_ms: u64, now_ms: u64) -> u64 {
        if planted(Mutant::AlarmAtServed) {
            return due_ms.max(now_ms);
        }
        let ahead_ms = if self.is_blind { 1 + EARLY_MS_MAX } else { 1 };
        let earliest_ms = now_ms.saturating_add(ahead_ms);
        let latest_ms = ALARM_MS_MAX.max(now_ms.saturating_add(AHEAD_MS_MAX));
        let mut at_ms = due_ms.min(latest_ms).max(earliest_ms);
        while self.served_ms.contains(&at_ms) {
            at_ms = at_ms.saturating_add(1);
        }
        at_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_set_in_the_future_and_never_at_the_time_that_is_served() {
        let mut alarm = Alarm::new();
        assert_eq!(alarm.place(5_000, 1_000), 5_000);
        assert_eq!(alarm.place(500, 1_000), 1_001);
        // Delivered a little early by the object's own clock.
        alarm.begin(Some(1_001));
        assert_eq!(alarm.place(500, 1_000), 1_002);
        assert_eq!(alarm.place(1_001, 1_000), 1_002);
        assert_eq!(alarm.place(1_003, 1_000), 1_003);
    }

    #[test]
    fn without_a_word_of_the_platform_each_of_the_last_alarms_may_be_the_one_that_is_served() {
        let mut alarm = Alarm::new();
        for at_ms in [2_000, 1_996, 1_997, 2_001, 2_000, 1_998] {
            alarm.note(KnownAlarm::At(at_ms));
        }
        alarm.begin(None);
        assert_eq!(alarm.known, KnownAlarm::None);
        assert_eq!(alarm.place(2_000, 1_990), 2_002);
        assert_eq!(alarm.place(1_996, 1_990), 1_996);
    }

    #[test]
    fn an_instance_that_knows_nothing_keeps_clear_of_an_alarm_that_came_early() {
        let mut alarm = Alarm::new();
        alarm.begin(None);
        assert_eq!(alarm.place(1_000, 1_000), 1_011);
        assert_eq!(alarm.place(2_000, 1_000), 2_000);
        alarm.note(KnownAlarm::At(2_000));
        alarm.begin(None);
        assert_eq!(alarm.place(1_000, 1_990), 1_991);
    }

    #[test]
    fn an_alarm_lies_where_the_platform_can_set_it() {
        let alarm = Alarm::new();
        assert_eq!(alarm.place(253_402_300_799_999, 1_000), ALARM_MS_MAX);
        // Behind that time too nothing is looked at again and again until it is due.
        let behind_ms = ALARM_MS_MAX + 5;
        assert_eq!(alarm.place(behind_ms + 9, behind_ms), behind_ms + 9);
        let year_on_ms = behind_ms + AHEAD_MS_MAX;
        assert_eq!(alarm.place(253_402_300_799_999, behind_ms), year_on_ms);
    }

    #[test]
    fn only_a_known_alarm_is_early_enough() {
        let mut alarm = Alarm::new();
        assert!(!alarm.is_set_for(u64::MAX, 0));
        assert!(!alarm.is_set_for(ALARM_MS_MAX, 0));
        alarm.note(KnownAlarm::At(2_000));
        assert!(alarm.is_set_for(2_000, 0));
        assert!(!alarm.is_set_for(1_999, 0));
        assert!(alarm.is_set_for(0, 1_999));
    }
}

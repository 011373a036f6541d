//! What is known of the alarm, and where it may be set.

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

/// The alarm and what is served by it.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) known: KnownAlarm,
    /// Changes with every write of the alarm, so that who has awaited something can tell.
    pub(crate) version: u64,
    /// The time of the alarm served last: never set again, the platform may take it for that one.
    served_ms: Option<u64>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            known: KnownAlarm::Unknown,
            version: 0,
            served_ms: None,
        }
    }

    /// An alarm is being served: it is spent, whatever was known of it.
    pub(crate) fn begin(&mut self, scheduled_at_ms: Option<u64>) {
        let known_ms = match self.known {
            KnownAlarm::At(at_ms) => Some(at_ms),
            KnownAlarm::Unknown | KnownAlarm::None => None,
        };
        self.served_ms = scheduled_at_ms.or(known_ms).or(self.served_ms);
        self.note(KnownAlarm::None);
    }

    pub(crate) fn note(&mut self, known: KnownAlarm) {
        self.known = known;
        self.version = self.version.wrapping_add(1);
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
        if crate::mutants::is_planted(crate::mutants::Mutant::AlarmAtServed) {
            return due_ms.max(now_ms);
        }
        let at_ms = due_ms.max(now_ms.saturating_add(1));
        if self.served_ms == Some(at_ms) {
            at_ms.saturating_add(1)
        } else {
            at_ms
        }
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
    fn without_a_word_of_the_platform_the_known_alarm_is_the_one_that_is_served() {
        let mut alarm = Alarm::new();
        alarm.note(KnownAlarm::At(2_000));
        alarm.begin(None);
        assert_eq!(alarm.known, KnownAlarm::None);
        assert_eq!(alarm.place(2_000, 1_990), 2_001);
    }

    #[test]
    fn only_a_known_alarm_is_early_enough() {
        let mut alarm = Alarm::new();
        assert!(!alarm.is_set_for(u64::MAX, 0));
        alarm.note(KnownAlarm::At(2_000));
        assert!(alarm.is_set_for(2_000, 0));
        assert!(!alarm.is_set_for(1_999, 0));
        assert!(alarm.is_set_for(0, 1_999));
    }
}

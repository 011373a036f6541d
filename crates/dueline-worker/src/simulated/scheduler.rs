//! The platform's alarm: outside of the object, so it outlives its instances.

/// How often an alarm that failed is tried again before it is given up.
pub const RETRIES_MAX: u32 = 6;
/// The wait before the first retry, in milliseconds, unless it is said otherwise; each further one is
/// twice as long.
const RETRY_FIRST_MS: u64 = 2_000;
const DOUBLINGS_MAX: u32 = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting,
    Running,
    /// Failed, to be tried again.
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    scheduled_ms: u64,
    deliver_at_ms: u64,
    status: Status,
    /// Set while the handler ran, or while a retry waits: it takes the place of a retry.
    queued_ms: Option<u64>,
    counted: u32,
    doublings: u32,
    /// Whether the last failure was counted.
    was_counted: bool,
}

impl Entry {
    fn new(at_ms: u64) -> Self {
        Self {
            scheduled_ms: at_ms,
            deliver_at_ms: at_ms,
            status: Status::Waiting,
            queued_ms: None,
            counted: 0,
            doublings: 0,
            was_counted: false,
        }
    }
}

/// When the alarm of one object is delivered.
#[derive(Debug)]
pub(super) struct Scheduler {
    entry: Option<Entry>,
    pub(super) retry_first_ms: u64,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            entry: None,
            retry_first_ms: RETRY_FIRST_MS,
        }
    }
}

impl Scheduler {
    pub(super) fn set(&mut self, at_ms: u64) {
        match &mut self.entry {
            Some(entry) if entry.status != Status::Waiting => entry.queued_ms = Some(at_ms),
            entry => *entry = Some(Entry::new(at_ms)),
        }
    }

    pub(super) fn delete(&mut self) {
        let Some(entry) = &mut self.entry else { return };
        match (entry.queued_ms, entry.status) {
            (Some(_), Status::Running) => entry.queued_ms = None,
            (Some(queued_ms), _) => self.entry = Some(Entry::new(queued_ms)),
            (None, Status::Running) => {}
            (None, _) => self.entry = None,
        }
    }

    /// The alarm is lost, as has been seen of platforms; not while it runs. Whether there was one.
    pub(super) fn lose(&mut self) -> bool {
        !self.is_running() && self.entry.take().is_some()
    }

    pub(super) fn is_running(&self) -> bool {
        self.entry
            .is_some_and(|entry| entry.status == Status::Running)
    }

    /// Whether an alarm failed and waits to be tried again. One that is set meanwhile waits for that too.
    pub(super) fn waits_for_retry(&self) -> bool {
        self.entry
            .is_some_and(|entry| entry.status == Status::Failed)
    }

    /// When the alarm is delivered next; `None` while it runs, and without one.
    pub(super) fn next_ms(&self) -> Option<u64> {
        let entry = self.entry?;
        (entry.status != Status::Running).then_some(entry.deliver_at_ms)
    }

    /// Begins a delivery: the time it was set for, and how often it was tried, as far as it counts.
    pub(super) fn start(&mut self) -> Option<(u64, u32)> {
        let entry = self.entry.as_mut()?;
        entry.status = Status::Running;
        Some((entry.scheduled_ms, entry.counted))
    }

    /// The handler ended, or never ran: well, or not.
    pub(super) fn ended(&mut self, failed: Option<bool>, now_ms: u64) {
        let Some(entry) = &mut self.entry else { return };
        if let Some(queued_ms) = entry.queued_ms {
            self.entry = Some(Entry::new(queued_ms));
            return;
        }
        let Some(counts) = failed else {
            self.entry = None;
            return;
        };
        if entry.counted >= RETRIES_MAX {
            self.entry = None;
            return;
        }
        if counts && !entry.was_counted {
            // The platform's own failures do not make the waits behind the object's longer.
            entry.doublings = 0;
        }
        entry.was_counted = counts;
        entry.counted += u32::from(counts);
        let wait_ms = self.retry_first_ms << entry.doublings.min(DOUBLINGS_MAX);
        entry.doublings += 1;
        entry.deliver_at_ms = now_ms.saturating_add(wait_ms);
        entry.status = Status::Failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_alarm_is_tried_six_times_more_and_then_given_up() {
        let mut scheduler = Scheduler::default();
        scheduler.set(1_000);
        let mut waits = Vec::new();
        let mut counts = Vec::new();
        while let Some(at_ms) = scheduler.next_ms() {
            counts.push(scheduler.start().unwrap().1);
            scheduler.ended(Some(true), at_ms);
            waits.extend(scheduler.next_ms().map(|next_ms| next_ms - at_ms));
        }
        assert_eq!(counts, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(waits, [2_000, 4_000, 8_000, 16_000, 32_000, 64_000]);
    }

    #[test]
    fn waits_begin_anew_where_the_platforms_own_failures_end() {
        let mut scheduler = Scheduler::default();
        scheduler.set(1_000);
        let mut waits = Vec::new();
        for counts in [false, false, true, true, false] {
            let at_ms = scheduler.next_ms().unwrap();
            scheduler.start();
            scheduler.ended(Some(counts), at_ms);
            waits.push(scheduler.next_ms().unwrap() - at_ms);
        }
        assert_eq!(waits, [2_000, 4_000, 2_000, 4_000, 8_000]);
    }

    #[test]
    fn an_alarm_that_is_set_while_a_retry_waits_is_not_brought_forward() {
        let mut scheduler = Scheduler::default();
        scheduler.set(1_000);
        scheduler.start();
        assert!(!scheduler.waits_for_retry());
        scheduler.ended(Some(true), 1_000);
        assert!(scheduler.waits_for_retry());
        scheduler.set(1_500);
        assert_eq!(scheduler.next_ms(), Some(3_000));
        // The object says that its alarm is another now.
        scheduler.start();
        scheduler.ended(None, 3_000);
        assert_eq!(scheduler.next_ms(), Some(1_500));
        assert!(!scheduler.waits_for_retry());
    }

    #[test]
    fn an_alarm_that_is_set_meanwhile_takes_the_place_of_a_retry() {
        let mut scheduler = Scheduler::default();
        scheduler.set(1_000);
        scheduler.start();
        scheduler.set(5_000);
        assert_eq!(scheduler.next_ms(), None);
        scheduler.ended(Some(true), 1_500);
        assert_eq!(scheduler.next_ms(), Some(5_000));
        assert_eq!(scheduler.start(), Some((5_000, 0)));
        scheduler.delete();
        scheduler.ended(None, 5_000);
        assert_eq!(scheduler.next_ms(), None);
    }
}

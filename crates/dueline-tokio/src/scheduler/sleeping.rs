use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::Scheduler;
use crate::status::NAP_MAX;
use crate::wall::Reading;

impl Scheduler {
    /// Sleeps until the next thing to do, or until something happens; at most a second, so that a
    /// clock that was set is noticed.
    pub(super) fn sleep(&mut self, reading: Reading) {
        let wait = self.settle_down(reading);
        if wait.is_zero() {
            return;
        }
        // Counted from the reading: time that has passed since must not add to the nap.
        let end = reading.monotonic.saturating_add(wait);
        if self.shared.engine.runtime().sleeps_in_real_time() {
            return self.signal.wait_for(end.saturating_sub(self.monotonic()));
        }
        let mut nap = self.shared.engine.runtime().sleep_until(end);
        let waker = Waker::from(Arc::clone(&self.signal));
        if nap
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            return;
        }
        self.signal.wait();
    }

    /// The same as a task, where nothing runs on threads.
    #[cfg(feature = "simulation")]
    pub(super) async fn nap(&mut self, reading: Reading) {
        let wait = self.settle_down(reading);
        if wait.is_zero() {
            return;
        }
        let end = reading.monotonic.saturating_add(wait);
        let mut nap = self.shared.engine.runtime().sleep_until(end);
        std::future::poll_fn(|context| {
            let woken = self.signal.poll_wait(context);
            if woken.is_ready() {
                return woken;
            }
            nap.as_mut().poll(context)
        })
        .await;
    }

    /// Says how things stand, and how long there is nothing to do.
    fn settle_down(&mut self, reading: Reading) -> Duration {
        let (wait, next_wake_ms) = self.time_until_next(reading);
        self.publish(next_wake_ms);
        self.answer_drains(reading.now_ms);
        wait
    }

    fn time_until_next(&self, reading: Reading) -> (Duration, Option<u64>) {
        let now = reading.monotonic;
        if !self.starts_ticks() {
            self.shared.looks.fall_asleep(0, std::iter::empty());
            return (NAP_MAX, None);
        }
        let may_read = self.may_read(now);
        let open: Vec<usize> = (0..self.windows.len())
            .filter(|index| self.has_room_for_window(*index))
            .collect();
        let mut at_ms = u64::MAX;
        for index in &open {
            let first_ms = self
                .windows
                .get(*index)
                .and_then(|window| window.first_ms());
            at_ms = at_ms.min(first_ms.unwrap_or(u64::MAX));
            if may_read {
                at_ms = at_ms.min(self.shared.looks.next(*index).1);
            }
        }
        let noted = open.iter().copied().filter(|_| may_read);
        let at_ms = self.shared.looks.fall_asleep(at_ms, noted);
        let others = [
            self.book.first_hold_end(),
            self.reads.next(now).filter(|_| self.has_few_queued()),
            self.audit.next(),
            self.requeue.next(),
        ];
        let wait = others
            .into_iter()
            .flatten()
            .map(|until| until.saturating_sub(now))
            .fold(self.wall.until(reading, at_ms), Duration::min)
            .min(NAP_MAX);
        (wait, (at_ms < u64::MAX).then_some(at_ms))
    }
}

use std::time::Duration;

use dueline::store::{LaneWake, Partition, Wake};

use dueline::timers::TimerKind;

use super::Scheduler;
use crate::mutants::{Mutant, planted};
use crate::plan::Ended;
use crate::wall::Reading;
use crate::work::{Event, TickDone};

impl Scheduler {
    /// Takes note of what the threads and the handle have said since the last look.
    pub(super) fn take_messages(&mut self, reading: Reading) {
        let messages = self.shared.inbox.take();
        if !messages.drains.is_empty() {
            // Whoever drains wants all that is stored, whoever wrote it.
            for index in 0..self.windows.len() {
                self.shared.looks.close(index, 0);
            }
            self.drains.extend(messages.drains);
        }
        for event in messages.events {
            match event {
                Event::Ticked(partition, done) => self.ticked(&partition, done, reading),
                Event::Settled(counts) => {
                    if let Some(counts) = counts {
                        self.status.totals.add(&counts);
                    }
                }
                // It has freed a slot; that is looked at in any case.
                Event::Released => {}
                Event::Requeued(step) => self.requeued(step, reading.monotonic),
                Event::Audited(page) => self.audited(page, reading.monotonic),
            }
        }
    }

    fn ticked(&mut self, partition: &Partition, done: Option<Box<TickDone>>, reading: Reading) {
        let served = self.overruns.end(partition);
        let Some(done) = done else {
            if self.starts_ticks() {
                self.status.ticks_panicked += 1;
            }
            let ended = Ended {
                refused: true,
                ..Ended::default()
            };
            self.end_turn(partition, &ended, reading);
            return;
        };
        let report = &done.report;
        self.status.ticks += 1;
        self.status.totals.add(&report.total);
        self.status.quarantined += report.quarantined;
        if report.total.progressed() > 0 {
            self.status.last_lateness_ms = report.worst_lateness_ms;
            self.status.worst_lateness_ms =
                self.status.worst_lateness_ms.max(report.worst_lateness_ms);
        }
        let settled: Vec<_> = done.next_wakes.iter().map(|(kind, _)| *kind).collect();
        // A lane that found no slot keeps its wake, and so does one that the budget left no fire for.
        // Any other that was not settled was refused.
        let found_none = |kind: &TimerKind| {
            let counts = report.per_kind.get(kind);
            self.is_detached(*kind) && counts.is_some_and(|counts| counts.deferred > 0)
        };
        let (without_slot, left_over): (Vec<_>, Vec<_>) = served
            .into_iter()
            .filter(|kind| !settled.contains(kind))
            .partition(found_none);
        let ran_out = report.stopped_on_budget && !planted(Mutant::BudgetTakenForRefused);
        let refused = report.held_back || (!left_over.is_empty() && !ran_out);
        let due_again = done
            .next_wakes
            .iter()
            .any(|(_, next_ms)| next_ms.is_some_and(|next_ms| next_ms <= reading.now_ms));
        let did_something = report.total.progressed()
            + report.total.raced
            + report.total.deferred
            + report.quarantined
            > 0;
        let ended = Ended {
            settled,
            without_slot: if refused { Vec::new() } else { without_slot },
            refused,
            full: report.store_full,
            fruitless: due_again && !did_something,
        };
        self.end_turn(partition, &ended, reading);
        for (kind, next_ms) in &done.next_wakes {
            let Some(at_ms) = *next_ms else { continue };
            self.note_stored(Wake {
                at_ms,
                partition: partition.clone(),
                kind: *kind,
            });
        }
    }

    fn end_turn(&mut self, partition: &Partition, ended: &Ended, reading: Reading) {
        let left = self.book.end(partition, ended, reading.monotonic);
        for wake in left.without_slot {
            self.wait_for_slot(Wake {
                at_ms: wake.at_ms,
                partition: partition.clone(),
                kind: wake.kind,
            });
        }
        let again = left.look_again.into_iter();
        self.shared
            .looks
            .lower(again.map(|kind| (kind, reading.now_ms)));
        let Some(delay) = left.held else { return };
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        if ended.refused {
            tracing::warn!(
                %partition,
                held_back_ms = delay_ms,
                "the partition could not be ticked to the end and is held back",
            );
        }
        self.look_later(&left.to_store, reading.now_ms, delay);
    }

    fn is_detached(&self, kind: TimerKind) -> bool {
        self.windows.iter().any(|window| {
            window
                .detached
                .is_some_and(|(detached, _)| detached == kind)
        })
    }

    /// Reads wakes again that found no place in memory.
    fn look_later(&self, wakes: &[LaneWake], now_ms: u64, delay: Duration) {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let at_ms = now_ms.saturating_add(delay_ms);
        self.shared
            .looks
            .lower(wakes.iter().map(|wake| (wake.kind, at_ms)));
    }

    /// Notes a stored wake that lies before the end of its window; one behind it is read in time.
    fn note_stored(&mut self, wake: Wake) {
        let index = self
            .windows
            .iter()
            .position(|window| window.kinds.contains(wake.kind));
        if index.is_some_and(|index| wake.at_ms < self.shared.looks.next(index).1) {
            self.keep(wake);
        }
    }
}

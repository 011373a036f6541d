//! I10, nobody starves: while nothing goes wrong, a partition with a timer that is due waits for no more
//! ticks of others than the bound.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Book, PartitionBook};
use crate::{Octets, What};

#[derive(Debug, Default)]
pub(super) struct Starvation {
    /// How many ticks there were.
    ticks: u64,
    /// Partitions by the due of the first timer that can run.
    by_due: BTreeSet<(u64, Octets)>,
    due_ms: BTreeMap<Octets, u64>,
    /// Partitions that wait, and how many ticks there had been when they began to.
    waiting: BTreeMap<Octets, u64>,
}

impl Checker for Starvation {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let Some(turns_max) = seen.book.rules.turns_max else {
            return;
        };
        match &seen.event.what {
            What::Phase { .. } => {
                self.waiting.clear();
                let due = self.due_ms.iter();
                self.by_due = due.map(|(name, due_ms)| (*due_ms, name.clone())).collect();
            }
            What::Registry { .. } | What::Stopped { .. } => {
                for (name, partition) in &seen.book.partitions {
                    self.note(seen.book, name, partition);
                }
            }
            What::Commit(commit) => {
                if let Some(partition) = seen.book.partitions.get(&commit.partition) {
                    self.note(seen.book, &commit.partition, partition);
                }
            }
            What::Tick(tick) if seen.book.liveness_since_ms.is_some() => {
                let since = self.waiting.remove(&tick.partition);
                let waited = since.map_or(0, |since| self.ticks - since);
                if waited > turns_max {
                    let text = format!("{:?} waited for {waited} ticks of others", tick.partition);
                    broken.add(Invariant::I10, seen.index, text);
                }
                self.ticks += 1;
                self.wait(seen.event.at_ms, &tick.partition);
            }
            _ => {}
        }
    }

    fn end(&mut self, book: &Book, length: usize, broken: &mut Findings) {
        let Some(turns_max) = book.rules.turns_max else {
            return;
        };
        for (partition, since) in &self.waiting {
            let waited = self.ticks - since;
            if waited > turns_max {
                let text = format!("{partition:?} waited for {waited} ticks of others to the end");
                broken.add(Invariant::I10, length, text);
            }
        }
    }
}

impl Starvation {
    /// Notes the first due of a partition as it is now.
    fn note(&mut self, book: &Book, name: &Octets, partition: &PartitionBook) {
        let can_run =
            |kind: dueline::timers::TimerKind| book.runs(kind.0) && !partition.is_paused(kind);
        let heads = partition.lanes().filter(|head| can_run(head.kind));
        let due_ms = heads.map(|head| head.due_ms).min();
        if self.due_ms.get(name).copied() == due_ms {
            return;
        }
        // What was the first is so no more: the partition was served, or somebody else changed it.
        if let Some(old_ms) = self.due_ms.remove(name) {
            self.by_due.remove(&(old_ms, name.clone()));
            if due_ms.is_none_or(|due_ms| due_ms > old_ms) {
                self.waiting.remove(name);
            }
        }
        if let Some(due_ms) = due_ms {
            self.due_ms.insert(name.clone(), due_ms);
            if !self.waiting.contains_key(name) {
                self.by_due.insert((due_ms, name.clone()));
            }
        }
    }

    /// Lets all wait that are due and do not wait already; the one that was just ticked waits anew.
    fn wait(&mut self, now_ms: u64, ticked: &Octets) {
        while let Some((due_ms, _)) = self.by_due.first()
            && *due_ms <= now_ms
            && let Some((_, name)) = self.by_due.pop_first()
        {
            self.waiting.insert(name, self.ticks);
        }
        if self
            .due_ms
            .get(ticked)
            .is_some_and(|due_ms| *due_ms <= now_ms)
        {
            self.waiting.insert(ticked.clone(), self.ticks);
        }
    }
}

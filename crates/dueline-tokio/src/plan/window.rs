use std::collections::{BTreeSet, VecDeque};

use dueline::store::Wake;
use dueline::timers::{Execution, KindSet, Registry, TimerKind};

use crate::mutants::{Mutant, planted};

/// Kinds that run or wait together, and the near wakes of them that have been read.
///
/// Kinds that are always able to run share a window. A detached kind has one of its own: while all
/// its slots are taken, its wakes lie there and in the store at no cost to anybody.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) kinds: KindSet,
    /// The detached kind this is the window of, and its concurrency.
    pub(crate) detached: Option<(TimerKind, u32)>,
    /// Most wakes read into it at a time; a backlog may take eight times as many.
    pub(crate) wakes_max: usize,
    wakes: BTreeSet<Wake>,
    /// Due wakes that had their turn and found no slot, in the order in which they go on: whoever
    /// has taken slots goes behind those who have had none.
    waiting: VecDeque<Wake>,
}

/// The windows of a registry: the first is that of the kinds that can always run, 0 among them for
/// rows too damaged to name theirs.
pub(crate) fn window_of(registry: &Registry, wakes_max: usize) -> Vec<Window> {
    let mut always = KindSet::new();
    if planted(Mutant::DriverAsksForUnknownKinds) {
        let kinds = KindSet::all();
        let unknown = kinds.iter().filter(|kind| registry.get(*kind).is_none());
        unknown.for_each(|kind| always.insert(kind));
    }
    always.insert(TimerKind::INVALID);
    let mut detached = Vec::new();
    for (kind, registration) in registry.iter() {
        match registration.execution() {
            Execution::Inline { .. } => always.insert(kind),
            Execution::Detached { concurrency } => detached.push((kind, concurrency)),
        }
    }
    let each = wakes_max
        .checked_div(2 * detached.len())
        .map_or(wakes_max, |share| share.clamp(16, 256));
    let mut windows = vec![Window::new(always, None, wakes_max)];
    for (kind, concurrency) in detached {
        let kinds = KindSet::from_iter([kind]);
        windows.push(Window::new(kinds, Some((kind, concurrency)), each));
    }
    windows
}

impl Window {
    fn new(kinds: KindSet, detached: Option<(TimerKind, u32)>, wakes_max: usize) -> Self {
        Self {
            kinds,
            detached,
            wakes_max: wakes_max.max(1),
            wakes: BTreeSet::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.wakes.len() + self.waiting.len()
    }

    /// Notes a wake that was read.
    pub(crate) fn insert(&mut self, wake: Wake) {
        if !self.waiting.contains(&wake) {
            self.wakes.insert(wake);
        }
    }

    /// Notes a due wake that waits for a slot, behind those that do.
    pub(crate) fn wait(&mut self, wake: Wake) {
        self.wakes.remove(&wake);
        if !self.waiting.contains(&wake) {
            self.waiting.push_back(wake);
        }
    }

    /// Whether a wake waits for a slot.
    pub(crate) fn is_waiting(&self, wake: &Wake) -> bool {
        self.waiting.contains(wake)
    }

    /// Forgets what was read, to read it again.
    pub(crate) fn clear(&mut self) {
        self.wakes.clear();
    }

    /// When its first wake is, in milliseconds since 1970; 0 if one waits for a slot.
    pub(crate) fn first_ms(&self) -> Option<u64> {
        if self.waiting.is_empty() {
            self.wakes.first().map(|wake| wake.at_ms)
        } else {
            Some(0)
        }
    }

    /// Whether any of its wakes is due.
    pub(crate) fn has_due(&self, now_ms: u64) -> bool {
        self.first_ms().is_some_and(|first_ms| first_ms <= now_ms)
    }

    /// Takes the wakes that are due: those that wait for a slot, then the others in the order of
    /// their times, or in that of their partitions if they are more than `in_order_max`.
    pub(crate) fn take_due(&mut self, now_ms: u64, in_order_max: usize) -> Vec<Wake> {
        let mut due = Vec::new();
        while let Some(first) = self.wakes.pop_first() {
            if first.at_ms > now_ms {
                self.wakes.insert(first);
                break;
            }
            due.push(first);
        }
        if due.len() > in_order_max {
            due.sort_by(|a, b| a.partition.cmp(&b.partition));
        }
        let mut all = Vec::from(std::mem::take(&mut self.waiting));
        all.append(&mut due);
        all
    }

    /// Forgets the wakes at or behind this time: they will be read when it comes.
    pub(crate) fn forget_from(&mut self, at_ms: u64) {
        while let Some(last) = self.wakes.pop_last() {
            if last.at_ms < at_ms {
                self.wakes.insert(last);
                break;
            }
        }
    }
}

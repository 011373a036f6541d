use std::collections::BTreeSet;

use dueline::store::Wake;
use dueline::timers::{Execution, KindSet, Registry, TimerKind};

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
}

/// The windows of a registry: the first is that of the kinds that can always run, 0 among them for
/// rows too damaged to name theirs.
pub(crate) fn window_of(registry: &Registry, wakes_max: usize) -> Vec<Window> {
    let mut always = KindSet::new();
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
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.wakes.len()
    }

    pub(crate) fn insert(&mut self, wake: Wake) {
        self.wakes.insert(wake);
    }

    pub(crate) fn clear(&mut self) {
        self.wakes.clear();
    }

    /// When its first wake is, in milliseconds since 1970.
    pub(crate) fn first_ms(&self) -> Option<u64> {
        self.wakes.first().map(|wake| wake.at_ms)
    }

    /// How many of its wakes are due.
    pub(crate) fn overdue(&self, now_ms: u64) -> usize {
        self.wakes
            .iter()
            .take_while(|wake| wake.at_ms <= now_ms)
            .count()
    }

    /// Takes the wakes that are due, in the order of their times.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Vec<Wake> {
        let mut due = Vec::new();
        while let Some(first) = self.wakes.pop_first() {
            if first.at_ms > now_ms {
                self.wakes.insert(first);
                break;
            }
            due.push(first);
        }
        due
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

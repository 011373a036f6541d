use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::registry::{Execution, Registry};
use super::{KindSet, TimerKind};
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedMap;

/// How many detached calls may be under way: per kind and in all.
#[derive(Clone, Debug)]
pub struct Slots {
    all: Arc<Counter>,
    kinds: Arc<OrderedMap<TimerKind, Arc<Counter>>>,
}

#[derive(Debug)]
struct Counter {
    used: AtomicU32,
    max: u32,
}

impl Counter {
    fn take(&self) -> bool {
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| {
                (used < self.max).then_some(used.saturating_add(1))
            })
            .is_ok()
    }

    fn free(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    fn has_room(&self) -> bool {
        self.used.load(Ordering::Acquire) < self.max
    }
}

impl Slots {
    pub(crate) fn new(registry: &Registry, calls_max: u32) -> Self {
        let kinds = registry
            .iter()
            .filter_map(|(kind, registration)| match registration.execution() {
                Execution::Detached { concurrency } => Some((
                    kind,
                    Arc::new(Counter {
                        used: AtomicU32::new(0),
                        max: concurrency,
                    }),
                )),
                Execution::Inline { .. } => None,
            })
            .collect();
        Self {
            all: Arc::new(Counter {
                used: AtomicU32::new(0),
                max: calls_max.max(1),
            }),
            kinds: Arc::new(kinds),
        }
    }

    /// Takes a slot for a call of this kind, if one is free.
    pub(crate) fn take(&self, kind: TimerKind) -> Option<Slot> {
        let of_kind = self.kinds.get(&kind)?;
        if !of_kind.take() {
            return None;
        }
        if !self.all.take() {
            of_kind.free();
            return None;
        }
        Some(Slot {
            all: Arc::clone(&self.all),
            of_kind: Arc::clone(of_kind),
        })
    }

    /// How many more calls could start now, whatever their kinds.
    pub(crate) fn left(&self) -> u32 {
        self.all.max.saturating_sub(self.used())
    }

    /// How many calls of this kind are under way.
    pub(crate) fn used_by(&self, kind: TimerKind) -> u32 {
        let of_kind = self.kinds.get(&kind);
        of_kind.map_or(0, |of_kind| of_kind.used.load(Ordering::Acquire))
    }

    /// The kinds that make calls.
    pub fn kinds(&self) -> impl Iterator<Item = TimerKind> + '_ {
        self.kinds.keys().copied()
    }

    /// Whether a call of this kind could start now; true for a kind that makes none.
    pub fn has_room(&self, kind: TimerKind) -> bool {
        match self.kinds.get(&kind) {
            Some(of_kind) => of_kind.has_room() && self.all.has_room(),
            None => true,
        }
    }

    /// The kinds of this set that could run now.
    pub fn runnable(&self, kinds: &KindSet) -> KindSet {
        kinds.iter().filter(|kind| self.has_room(*kind)).collect()
    }

    /// How many calls are under way.
    pub fn used(&self) -> u32 {
        self.all.used.load(Ordering::Acquire)
    }
}

/// A place for one call; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    all: Arc<Counter>,
    of_kind: Arc<Counter>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if planted(Mutant::SlotLeaks) {
            return;
        }
        self.all.free();
        self.of_kind.free();
    }
}

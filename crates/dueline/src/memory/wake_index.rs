use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::mutants::{Mutant, planted};
use crate::store::{Partition, Wake, WakeCursor};
use crate::timers::{KindSet, TimerKind};

/// The wakes twice over: by lane, to know whether one is armed, and by kind and time, so that wakes
/// of kinds nobody asks for cost nothing.
#[derive(Debug, Default)]
pub(super) struct WakeIndex {
    by_lane: BTreeMap<Partition, BTreeMap<TimerKind, BTreeSet<u64>>>,
    by_kind: BTreeMap<TimerKind, BTreeSet<(u64, Partition)>>,
}

impl WakeIndex {
    /// Adds a wake unless the lane has one at or before this time; says whether it did.
    pub(super) fn arm(&mut self, partition: &Partition, kind: TimerKind, at_ms: u64) -> bool {
        let lanes = self.by_lane.entry(partition.clone()).or_default();
        let lane = lanes.entry(kind).or_default();
        if lane
            .first()
            .is_some_and(|first_ms| *first_ms <= at_ms || planted(Mutant::PutTrustsAnyWake))
        {
            return false;
        }
        lane.insert(at_ms);
        self.by_kind
            .entry(kind)
            .or_default()
            .insert((at_ms, partition.clone()));
        true
    }

    /// Takes one wake away; says whether it was there.
    pub(super) fn remove(&mut self, wake: &Wake) -> bool {
        let Some(lanes) = self.by_lane.get_mut(&wake.partition) else {
            return false;
        };
        let Some(lane) = lanes.get_mut(&wake.kind) else {
            return false;
        };
        if !lane.remove(&wake.at_ms) {
            return false;
        }
        if lane.is_empty() {
            lanes.remove(&wake.kind);
        }
        if lanes.is_empty() {
            self.by_lane.remove(&wake.partition);
        }
        if let Some(times) = self.by_kind.get_mut(&wake.kind) {
            times.remove(&(wake.at_ms, wake.partition.clone()));
            if times.is_empty() {
                self.by_kind.remove(&wake.kind);
            }
        }
        true
    }

    /// Up to `limit` wakes of these kinds at or before a time, behind the cursor, in order.
    pub(super) fn due(
        &self,
        kinds: &KindSet,
        until_ms: u64,
        after: Option<&WakeCursor>,
        limit: usize,
    ) -> Vec<Wake> {
        let asked = self
            .by_kind
            .iter()
            .filter(|(kind, _)| kinds.contains(**kind));
        let mut due: Vec<Wake> = asked
            .flat_map(|(kind, times)| Self::due_of_kind(*kind, times, until_ms, after, limit))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        due
    }

    fn due_of_kind<'a>(
        kind: TimerKind,
        times: &'a BTreeSet<(u64, Partition)>,
        until_ms: u64,
        after: Option<&WakeCursor>,
        limit: usize,
    ) -> impl Iterator<Item = Wake> + use<'a> {
        let from = after
            .map(WakeCursor::position)
            .map_or(Bound::Unbounded, |last| {
                let place = (last.at_ms, last.partition.clone());
                // Within one time and partition the order is by kind.
                if kind > last.kind {
                    Bound::Included(place)
                } else {
                    Bound::Excluded(place)
                }
            });
        times
            .range((from, Bound::Unbounded))
            .take_while(move |(at_ms, _)| *at_ms <= until_ms)
            .take(limit)
            .map(move |(at_ms, partition)| Wake {
                at_ms: *at_ms,
                partition: partition.clone(),
                kind,
            })
    }

    /// Every wake in order.
    pub(super) fn all(&self) -> Vec<Wake> {
        self.due(&KindSet::all(), u64::MAX, None, usize::MAX)
    }

    /// Up to `limit` partitions with wakes behind the one given.
    pub(super) fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> impl Iterator<Item = Partition> + 'a {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_lane
            .range::<Partition, _>((from, Bound::Unbounded))
            .map(|(partition, _)| partition.clone())
            .take(limit)
    }
}

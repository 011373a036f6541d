//! For a planted bug: the lanes' heads as the last scan of a partition could have seen them.

use std::collections::BTreeMap;

use super::state::State;
use crate::store::Partition;
use crate::timers::TimerKind;

/// When each lane wanted to be looked at.
pub(super) type HeadsSeen = BTreeMap<Partition, BTreeMap<TimerKind, u64>>;

impl State {
    pub(super) fn note_heads(&mut self, partition: &Partition) {
        let heads = self
            .lanes(partition)
            .into_iter()
            .filter_map(|kind| Some((kind, self.lane_wants_ms(partition, kind, 0)?)))
            .collect();
        self.heads_seen.insert(partition.clone(), heads);
    }

    /// What a settle would set that trusts the last scan.
    pub(super) fn head_seen_ms(
        &self,
        partition: &Partition,
        kind: TimerKind,
        now_ms: u64,
    ) -> Option<u64> {
        let heads = self.heads_seen.get(partition)?;
        heads.get(&kind).map(|head_ms| (*head_ms).max(now_ms))
    }
}

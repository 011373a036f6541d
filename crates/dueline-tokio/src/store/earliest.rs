use std::collections::{BTreeMap, BTreeSet};

use dueline::rows::{class, lane_head};
use dueline::store::{Batch, Write};
use dueline::timers::TimerKind;

/// How early a batch makes lanes of its partition wake: the due of each lane's first put, and 0 for
/// a lane whose pause ends. Empty for a batch that wakes nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Earliest {
    lanes: BTreeMap<TimerKind, u64>,
    /// Those whose pause ends: their first wake may lie anywhere.
    resumed: BTreeSet<TimerKind>,
}

impl Earliest {
    pub(super) fn of<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Self {
        let (mut lanes, mut resumed) = (BTreeMap::new(), BTreeSet::new());
        for write in batches.into_iter().flat_map(|batch| &batch.writes) {
            let head = match write {
                Write::Put(key, _) => lane_head(key).map(|head| (head.kind, head.due_ms)),
                Write::Delete(key) => match key.as_ref() {
                    [class::PAUSE, 0, kind] => {
                        resumed.insert(TimerKind(*kind));
                        Some((TimerKind(*kind), 0))
                    }
                    _ => None,
                },
            };
            if let Some((kind, at_ms)) = head {
                let first = lanes.entry(kind).or_insert(at_ms);
                *first = at_ms.min(*first);
            }
        }
        Self { lanes, resumed }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn resumed(&self) -> impl Iterator<Item = TimerKind> + '_ {
        self.resumed.iter().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TimerKind, u64)> + '_ {
        self.lanes.iter().map(|(kind, at_ms)| (*kind, *at_ms))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dueline::rows::{PauseKey, TimerKey};

    use super::*;

    fn timer(kind: u8, due_ms: u64) -> Bytes {
        TimerKey {
            kind: TimerKind(kind),
            due_ms,
            generation: 1,
            reference: Bytes::new(),
        }
        .encode()
    }

    #[test]
    fn the_first_put_of_each_lane_counts_and_an_ended_pause_counts_as_now() {
        let pause = PauseKey {
            kind: TimerKind(18),
        };
        let batches = [
            Batch::new().put(timer(16, 900), "").put("state", "open"),
            Batch::new()
                .put(timer(16, 300), "")
                .put(timer(17, 500), "")
                .delete(timer(19, 1))
                .delete(pause.encode()),
        ];
        let earliest = Earliest::of(&batches);
        assert!(earliest.resumed().eq([TimerKind(18)]));
        let lanes: Vec<(u8, u64)> = earliest
            .iter()
            .map(|(kind, at_ms)| (kind.0, at_ms))
            .collect();
        assert_eq!(lanes, [(16, 300), (17, 500), (18, 0)]);
    }

    #[test]
    fn a_put_that_does_not_decode_wakes_the_lane_its_bytes_name() {
        let short = Bytes::from_static(&[class::TIMER, 0]);
        let lanes: Vec<_> = Earliest::of(&[Batch::new().put(short, "")])
            .iter()
            .collect();
        assert_eq!(lanes, [(TimerKind::INVALID, 0)]);
        assert!(Earliest::of(&[Batch::new().put("state", "open")]).is_empty());
    }
}

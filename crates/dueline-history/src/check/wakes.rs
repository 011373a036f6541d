//! I7, no wake is missed: after every commit each lane that is not paused has a wake at or before its
//! first row, or the time it is.

use dueline::rows::{LaneHead, lane_head};

use super::{Checker, Findings, Invariant, Seen};
use crate::{LaneWake, What};

#[derive(Debug, Default)]
pub(super) struct Wakes;

impl Checker for Wakes {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        if !seen.book.rules.wakes_kept {
            return;
        }
        let now_ms = seen.book.latest_store_ms;
        if let Some((commit, partition)) = seen.commit()
            && !commit.has_more
        {
            for head in partition.lanes() {
                if !partition.is_paused(head.kind) && !is_awake(head, &commit.wakes, now_ms) {
                    broken.add(Invariant::I7, seen.index, missed(head));
                }
            }
        }
        if let What::Scan(scan) = &seen.event.what {
            let heads = scan.rows.iter().filter_map(|(key, _)| lane_head(key));
            let mut lane = None;
            for head in heads {
                let is_first = lane != Some(head.kind);
                lane = Some(head.kind);
                let pause = dueline::rows::PauseKey { kind: head.kind }.encode();
                let is_paused = scan
                    .rows
                    .binary_search_by(|(key, _)| key.0.cmp(&pause))
                    .is_ok();
                if is_first && !is_paused && !is_awake(head, &scan.wakes, now_ms) {
                    broken.add(Invariant::I7, seen.index, missed(head));
                }
            }
        }
    }
}

fn is_awake(head: LaneHead, wakes: &[LaneWake], now_ms: u64) -> bool {
    let until_ms = head.due_ms.max(now_ms);
    wakes
        .iter()
        .any(|wake| wake.kind == head.kind.0 && wake.at_ms <= until_ms)
}

fn missed(head: LaneHead) -> String {
    format!(
        "the lane of kind {} has no wake for its first row, due at {}",
        head.kind, head.due_ms
    )
}

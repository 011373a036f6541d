//! I11, timers of a lane take effect in their order: within one tick, those that were there before it go
//! in the order of their keys. Promised for kinds that run inside the tick, a tick at a time.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Checker, Findings, Invariant, Seen};
use crate::book::Change;
use crate::{Octets, Source};

#[derive(Debug, Default)]
pub(super) struct Order {
    /// The turn and the key of the last effect of a lane, and the index of its commit.
    last: BTreeMap<(Octets, u8), (u64, Bytes, usize)>,
}

impl Checker for Order {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        if commit.turn == 0 || commit.source != Source::Engine {
            return;
        }
        for change in &seen.applied.changes {
            let Change::Gone { from } = change else {
                continue;
            };
            let kind = from.occurrence.kind;
            let is_effect = |mark: &crate::EffectMark| mark.occurrence == from.occurrence;
            if !seen.book.rules.kinds_in_order.contains(&kind)
                || from.is_claimed()
                || !commit.effects.iter().any(is_effect)
            {
                continue;
            }
            let lane = (commit.partition.clone(), kind);
            if let Some((turn, key, index)) = self.last.get(&lane)
                && *turn == commit.turn
                && *key > from.key
                && from.put.index < *index
                && from.put.turn != commit.turn
            {
                let text = format!("took effect behind a later one: {from:?}");
                broken.add(Invariant::I11, seen.index, text);
            }
            let last = (commit.turn, from.key.clone(), seen.index);
            self.last.insert(lane, last);
        }
    }
}

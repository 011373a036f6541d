//! Commits as events of the history.

use dueline::rows::TimerRow;
use dueline::store::{Batch, Partition, Wake, Write};
use dueline_history::{Commit, EffectMark, LaneWake, Occurrence, Octets, Source, What};
use dueline_testkit::model;

use super::{Disk, Origin};
use crate::tag::Tag;

impl Disk {
    pub(super) fn record(&self, origin: &Origin, partition: &Partition, batches: &[Batch]) {
        let wakes = lane_wakes(&self.memory.wakes(), partition);
        let store_ms = self.now_ms();
        for batch in batches {
            let (source, request, turn) = match origin.tag {
                Tag::Engine => (Source::Engine, None, 0),
                Tag::Turn(turn) => (Source::Engine, None, turn),
                Tag::Request(request) => (Source::User, Some(request), 0),
            };
            let commit = Commit {
                source,
                node: Some(origin.node),
                request,
                epoch: if source == Source::User {
                    0
                } else {
                    origin.epoch
                },
                turn,
                partition: octets(partition.as_bytes()),
                store_ms,
                preconditions: u32::try_from(batch.preconditions.len()).unwrap_or(u32::MAX),
                rows: batch.writes.iter().map(row).collect(),
                effects: effects(batch),
                cuts: cuts(batch),
                wakes: wakes.clone(),
                landed_late: origin.late,
            };
            self.recorder.event(&origin.actor, What::Commit(commit));
        }
    }
}

pub(crate) fn octets(bytes: &[u8]) -> Octets {
    Octets(bytes::Bytes::copy_from_slice(bytes))
}

/// The wakes of one partition.
pub(crate) fn lane_wakes(wakes: &[Wake], partition: &Partition) -> Vec<LaneWake> {
    wakes
        .iter()
        .filter(|wake| wake.partition == *partition)
        .map(|wake| LaneWake {
            kind: wake.kind.0,
            at_ms: wake.at_ms,
        })
        .collect()
}

fn row(write: &Write) -> (Octets, Option<Octets>) {
    match write {
        Write::Put(key, value) => (Octets(key.clone()), Some(Octets(value.clone()))),
        Write::Delete(key) => (Octets(key.clone()), None),
    }
}

fn occurrence(of: model::Occurrence) -> Occurrence {
    Occurrence {
        kind: of.kind.0,
        reference: Octets(of.reference),
        generation: of.generation,
    }
}

/// The timers whose handlers say in this batch that they took effect.
fn effects(batch: &Batch) -> Vec<EffectMark> {
    let puts = || {
        batch.writes.iter().filter_map(|write| match write {
            Write::Put(key, value) => Some((key, value)),
            Write::Delete(_) => None,
        })
    };
    puts()
        .filter_map(|(key, value)| {
            let of = model::effect_of(key)?;
            let (attempt, due_ms) = model::effect_details(value).unwrap_or_default();
            // The same timer under another generation: its handler has scheduled it again.
            let next_due_ms = puts().find_map(|(key, value)| {
                let next = dueline::rows::TimerKey::decode(key).ok()?;
                let same = next.kind == of.kind && next.reference == of.reference;
                if !same || next.generation == of.generation {
                    return None;
                }
                Some(TimerRow::decode(value).ok()?.header.original_due_ms)
            });
            Some(EffectMark {
                occurrence: occurrence(of),
                attempt,
                due_ms,
                next_due_ms,
            })
        })
        .collect()
}

fn cuts(batch: &Batch) -> Vec<Occurrence> {
    let puts = batch.writes.iter().filter_map(|write| match write {
        Write::Put(key, _) => model::cut_of(key),
        Write::Delete(_) => None,
    });
    puts.map(occurrence).collect()
}

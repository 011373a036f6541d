//! Commits as events of the history.

use dueline::store::{Batch, Partition, Wake, Write};
use dueline_history::{Commit, EffectMark, LaneWake, Occurrence, Octets, Source, What};
use dueline_testkit::model;

use super::{Disk, Origin};
use crate::tag::Tag;

impl Disk {
    pub(super) fn record(&self, origin: &Origin, partition: &Partition, batches: &[Batch]) {
        let wakes = lane_wakes(&self.memory.wakes(), partition);
        let store_ms = self.now_ms();
        for (place, batch) in batches.iter().enumerate() {
            let commit = Commit {
                store_ms,
                wakes: wakes.clone(),
                landed_late: origin.late,
                asked_ms: origin.late.then_some(origin.asked_ms),
                has_more: place + 1 < batches.len(),
                ..commit_of(origin.tag, (origin.node, origin.epoch), partition, batch)
            };
            self.recorder.event(&origin.actor, What::Commit(commit));
        }
    }
}

/// What a batch says of itself, asked for on behalf of this task of a process.
pub(crate) fn commit_of(
    tag: Tag,
    (node, epoch): (u16, u64),
    partition: &Partition,
    batch: &Batch,
) -> Commit {
    let (source, request, turn) = match tag {
        Tag::Engine => (Source::Engine, None, 0),
        Tag::Turn(turn) => (Source::Engine, None, turn),
        Tag::Request(request) => (Source::User, (request > 0).then_some(request), 0),
    };
    Commit {
        source,
        node: Some(node),
        request,
        epoch: if source == Source::User { 0 } else { epoch },
        turn,
        partition: octets(partition.as_bytes()),
        preconditions: u32::try_from(batch.preconditions.len()).unwrap_or(u32::MAX),
        rows: batch.writes.iter().map(row).collect(),
        effects: effects(batch),
        cuts: model::cuts_of(batch).into_iter().map(occurrence).collect(),
        ..Commit::default()
    }
}

pub(crate) fn octets(bytes: &[u8]) -> Octets {
    Octets(bytes::Bytes::copy_from_slice(bytes))
}

/// The wakes of one partition.
pub(crate) fn lane_wakes(wakes: &[Wake], partition: &Partition) -> Vec<LaneWake> {
    lane_wakes_of(wakes, &octets(partition.as_bytes()))
}

/// The same by the name of the partition.
pub(crate) fn lane_wakes_of(wakes: &[Wake], partition: &Octets) -> Vec<LaneWake> {
    wakes
        .iter()
        .filter(|wake| wake.partition.as_bytes() == partition.0.as_ref())
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
    let told = model::effects_told(batch).into_iter();
    told.map(|told| EffectMark {
        occurrence: occurrence(told.occurrence),
        attempt: told.attempt,
        due_ms: told.due_ms,
        next_due_ms: told.next_due_ms,
    })
    .collect()
}

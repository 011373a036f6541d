//! What commits in a history, as the events that its invariants are held to.

use std::sync::Arc;

use dueline::runtime::Clock;
use dueline::store::Partition;
use dueline_history::{
    Commit, EffectMark, EngineRules, LaneWake, Occurrence, Recorder, Source, What, check_all, keep,
    scan, trace_hash,
};
use dueline_testkit::model::{self, Arena, Committed, cuts_of, effects_told};
use dueline_testkit::{ManualClock, block_on};

use super::driver::KINDS;

/// A history of everything that commits in an arena. Its clocks differ and are never set.
pub(super) fn record(arena: &Arena, clock: &ManualClock) -> Arc<Recorder> {
    let recorder = Arc::new(Recorder::new());
    let now_ms = |clock: &ManualClock| u64::try_from(clock.wall_ms()).unwrap_or(0);
    let begin = What::Begin {
        seed: 0,
        deadline_ms: 0,
        lag_ms: 0,
        rules: Some(Box::new(EngineRules {
            skew_ms: Some(0),
            wakes_kept: true,
            ..EngineRules::default()
        })),
    };
    recorder.record(now_ms(clock), &"test".into(), begin);
    let kinds = KINDS.map(|kind| kind.0).to_vec();
    let registry = What::Registry { node: 0, kinds };
    recorder.record(now_ms(clock), &"test".into(), registry);
    let (here, clock) = (Arc::clone(&recorder), clock.clone());
    arena.watch(move |committed| {
        let actor = format!("process-{}", committed.owner).into();
        let commit = What::Commit(commit_of(committed));
        here.record(now_ms(&clock), &actor, commit);
    });
    recorder
}

fn commit_of(committed: &Committed<'_>) -> Commit {
    let mut commit = match committed.batch {
        Some(batch) => Commit {
            effects: effects_told(batch)
                .iter()
                .map(|told| EffectMark {
                    occurrence: occurrence(&told.occurrence),
                    attempt: told.attempt,
                    due_ms: told.due_ms,
                    next_due_ms: told.next_due_ms,
                })
                .collect(),
            cuts: cuts_of(batch).iter().map(occurrence).collect(),
            ..Commit::of_batch(committed.partition, batch)
        },
        None => Commit {
            partition: committed.partition.into(),
            ..Commit::default()
        },
    };
    commit.source = match (committed.batch, committed.source) {
        (None, _) => Source::Store,
        (Some(_), model::Source::Engine) => Source::Engine,
        (Some(_), model::Source::User) => Source::User,
    };
    commit.node = (commit.source == Source::Engine).then_some(0);
    commit.epoch = committed.owner;
    commit.store_ms = committed.now_ms;
    commit.wakes = committed.wakes.iter().map(LaneWake::from).collect();
    commit.landed_late = committed.late_since.is_some();
    commit
}

fn occurrence(of: &model::Occurrence) -> Occurrence {
    Occurrence {
        kind: of.kind.0,
        reference: of.reference.clone().into(),
        generation: of.generation,
    }
}

/// Everything is at rest: what the history broke, and where it is kept.
pub(super) fn judge(recorder: &Recorder, arena: &Arena, partition: &Partition) -> Option<String> {
    let found = block_on(scan(arena.memory().as_ref(), partition, true));
    let found = found.expect("a memory store is read");
    // Later than any due: nothing may be left that could run.
    recorder.record(u64::MAX, &"test".into(), What::Scan(found));
    let events = recorder.take();
    let broken = check_all(&events);
    let name = format!("operations-{:016x}", trace_hash(&events));
    (!broken.is_empty()).then(|| keep(&name, &events, &broken))
}

//! What Dueline's side commits, as a history that its invariants are held to.

use std::sync::Arc;
use std::time::Duration;

use dueline::memory::MemoryStore;
use dueline::rows::TimerKey;
use dueline::runtime::Clock;
use dueline::store::{Batch, Partition, WakeStore, Write};
use dueline::timers::{DueTimer, Engine, RetryPolicy, RunReport, TickBudget, TimerKind};
use dueline_history::{
    EffectMark, EngineRules, Occurrence, Recorder, Retries, Tick, What, Witness, check_all, keep,
    scan,
};
use dueline_testkit::{ManualClock, block_on};

use crate::KINDS;
use crate::script::EFFECT;

const NODE: u16 = 0;

/// The history of one side.
#[derive(Debug)]
pub(super) struct History {
    pub(super) witness: Arc<Witness>,
    recorder: Arc<Recorder>,
    seed: u64,
    turn: u64,
}

impl History {
    pub(super) fn begin(
        seed: u64,
        retry: RetryPolicy,
        memory: &Arc<MemoryStore>,
        clock: &ManualClock,
    ) -> Self {
        let recorder = Arc::new(Recorder::new());
        let store = Arc::clone(memory) as Arc<dyn WakeStore>;
        let clock = Arc::new(clock.clone()) as Arc<dyn Clock>;
        let witness = Witness::new(store, Arc::clone(&recorder), clock, (NODE, 1), marked);
        let retries = KINDS.map(|kind| Retries::of(TimerKind(kind), &retry));
        witness.record(What::Begin {
            seed,
            deadline_ms: 0,
            lag_ms: 0,
            rules: Some(Box::new(EngineRules {
                kinds_in_order: KINDS.to_vec(),
                retries: retries.to_vec(),
                wakes_kept: true,
                ..EngineRules::default()
            })),
        });
        witness.record(What::Started {
            node: NODE,
            epoch: 1,
        });
        witness.record(What::Registry {
            node: NODE,
            kinds: KINDS.to_vec(),
        });
        Self {
            witness: Arc::new(witness),
            recorder,
            seed,
            turn: 0,
        }
    }

    /// When a tick begins, by the wall clock and the one that is never set.
    pub(super) fn begin_tick(&mut self, engine: &Engine) -> (u64, Duration) {
        self.turn += 1;
        self.witness.set_turn(self.turn);
        let runtime = engine.runtime();
        (runtime.now_ms(), runtime.monotonic())
    }

    pub(super) fn end_tick(
        &self,
        engine: &Engine,
        partition: &Partition,
        (began_ms, began): (u64, Duration),
        (budget, report): (&TickBudget, &RunReport),
    ) {
        let elapsed = engine.runtime().monotonic().saturating_sub(began);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let tick = Tick::of(
            (NODE, self.turn),
            partition.into(),
            (began_ms, elapsed_ms),
            budget,
            report,
        );
        self.witness.record(What::Tick(tick));
        self.witness.set_turn(0);
    }

    pub(super) fn judge(
        &mut self,
        memory: &Arc<MemoryStore>,
        partition: &Partition,
    ) -> Result<(), String> {
        let found = block_on(scan(memory.as_ref(), partition, false));
        let found = found.map_err(|error| error.to_string())?;
        self.witness.record(What::Scan(found));
        let events = self.recorder.take();
        let broken = check_all(&events);
        if broken.is_empty() {
            return Ok(());
        }
        Err(keep(&format!("compare-{}", self.seed), &events, &broken))
    }
}

/// What the row of an effect says here: `attempt:u16 due_ms:u64`, and the due that comes next, if any.
pub(super) fn effect_value(timer: &DueTimer, next_due_ms: Option<u64>) -> Vec<u8> {
    let mut said = timer.attempt().to_be_bytes().to_vec();
    said.extend(timer.due_at_ms().to_be_bytes());
    said.extend(next_due_ms.iter().flat_map(|due_ms| due_ms.to_be_bytes()));
    said
}

/// A batch that puts the row of an effect and deletes its timer.
fn marked(batch: &Batch) -> (Vec<EffectMark>, Vec<Occurrence>) {
    let effects = batch.writes.iter().filter_map(|write| {
        let Write::Put(key, value) = write else {
            return None;
        };
        let (kind, reference) = key.strip_prefix(EFFECT)?.split_first()?;
        let ended = batch.writes.iter().find_map(|write| match write {
            Write::Delete(key) => TimerKey::decode(key)
                .ok()
                .filter(|it| it.kind.0 == *kind && it.reference == reference),
            Write::Put(..) => None,
        })?;
        let (attempt, rest) = value.split_first_chunk()?;
        let (due_ms, rest) = rest.split_first_chunk()?;
        Some(EffectMark {
            occurrence: Occurrence {
                kind: ended.kind.0,
                reference: ended.reference.into(),
                generation: ended.generation,
            },
            attempt: u16::from_be_bytes(*attempt),
            due_ms: u64::from_be_bytes(*due_ms),
            next_due_ms: rest.first_chunk().copied().map(u64::from_be_bytes),
        })
    });
    (effects.collect(), Vec::new())
}

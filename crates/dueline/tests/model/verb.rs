//! What the client of a history does.

use std::sync::Arc;

use dueline::Bytes;
use dueline::rows::TimerKey;
use dueline::runtime::Runtime;
use dueline::store::{Batch, BatchOutcome, NamespaceStore, Partition, StoreError, StoreErrorKind};
use dueline::timers::{Policy, Scheduled, Timer, TimerError, TimerKind, Timers};
use dueline_history::{Outcome, Told, Verb, VerbName};
use dueline_testkit::model::script::{KINDS, REFERENCES, random_payload};
use dueline_testkit::model::{Arena, Random, Source};

use super::record::Record;

/// A verb of the client, and the row that no verb makes.
#[derive(Clone, Copy)]
enum What {
    Schedule,
    Cancel,
    Pause,
    Resume,
    Reschedule,
    Requeue,
    WriteMalformed,
    WriteUndecodable,
}

/// A request of the client, as it is sent.
pub struct Request {
    number: u64,
    timers: Timers,
    partition: Partition,
    record: Record,
    what: What,
    kind: TimerKind,
    reference: Bytes,
    due_ms: u64,
    timer: Timer,
    policy: Policy,
    named: bool,
    generation: u64,
}

impl Request {
    /// A verb of the client, or a row that no verb makes.
    pub fn random(
        random: &mut Random,
        arena: &Arc<Arena>,
        runtime: &Runtime,
        partition: &Partition,
        record: &Record,
    ) -> Self {
        let number = record.next_request();
        let store = arena.actor_of(Source::User, number) as Arc<dyn NamespaceStore>;
        let kind = random.pick(&KINDS);
        let reference = Bytes::from_static(random.pick(&REFERENCES).as_bytes());
        let now_ms = runtime.now_ms();
        let due_ms = match random.below(4) {
            0 => now_ms - 500,
            1 => now_ms,
            2 => now_ms + 1,
            _ => now_ms + random.below(4_000),
        };
        let what = match random.below(20) {
            0..12 => What::Schedule,
            12..14 => What::Cancel,
            14 => What::Pause,
            15 => What::Resume,
            16 => What::Reschedule,
            17 => What::Requeue,
            18 => What::WriteMalformed,
            _ => What::WriteUndecodable,
        };
        let policy = random.pick(&[Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent]);
        let mut timer = Timer::new(kind, reference.clone())
            .due_at(due_ms)
            .payload(random_payload(random));
        let named = random.chance(60);
        if named {
            timer = timer.named();
        }
        Self {
            number,
            timers: Timers::new(store, runtime.clone()),
            partition: partition.clone(),
            record: record.clone(),
            what,
            kind,
            reference,
            due_ms,
            timer,
            policy,
            named,
            generation: random.next_u64(),
        }
    }

    /// Sends it, and records what was asked for and told.
    pub async fn send(self) {
        let told = match self.what {
            What::Schedule => self.schedule().await,
            What::Cancel => self.cancel().await,
            What::Pause | What::Resume => self.pause().await,
            What::Reschedule => self.reschedule().await,
            What::Requeue => self.requeue().await,
            What::WriteMalformed | What::WriteUndecodable => self.write().await,
        };
        if let Some(told) = told {
            self.record.told(self.number, told);
        }
    }

    fn ask(&self, verb: VerbName, kind: TimerKind, reference: &Bytes) {
        self.record.verb(Verb {
            request: self.number,
            partition: (&self.partition).into(),
            kind: kind.0,
            reference: reference.into(),
            verb,
            policy: (verb == VerbName::Schedule).then(|| self.policy.into()),
            named: self.named,
            due_ms: Some(self.due_ms),
        });
    }

    async fn schedule(&self) -> Option<Told> {
        self.ask(VerbName::Schedule, self.kind, &self.reference);
        let timer = self.timer.clone();
        let done = self.timers.schedule(&self.partition, timer, self.policy);
        Some(told_of(done.await))
    }

    async fn cancel(&self) -> Option<Told> {
        self.ask(VerbName::Cancel, self.kind, &self.reference);
        let (partition, reference) = (&self.partition, &self.reference);
        let done = self.timers.cancel(partition, self.kind, reference, None);
        Some(match done.await {
            Ok(Some(removed)) => ok(Outcome::Removed, removed.generation),
            Ok(None) => ok(Outcome::NotFound, 0),
            Err(error) => failed(&error),
        })
    }

    async fn reschedule(&self) -> Option<Told> {
        self.ask(VerbName::Reschedule, self.kind, &self.reference);
        let (partition, reference) = (&self.partition, &self.reference);
        let done = self
            .timers
            .reschedule(partition, self.kind, reference, self.due_ms, None);
        Some(told_of(done.await))
    }

    async fn pause(&self) -> Option<Told> {
        let done = if matches!(self.what, What::Pause) {
            self.ask(VerbName::Pause, self.kind, &Bytes::new());
            self.timers.pause(&self.partition, self.kind).await
        } else {
            self.ask(VerbName::Resume, self.kind, &Bytes::new());
            self.timers.resume(&self.partition, self.kind).await
        };
        Some(match done {
            Ok(true) => ok(Outcome::Written, 0),
            Ok(false) => ok(Outcome::NotFound, 0),
            Err(error) => failed(&error),
        })
    }

    async fn requeue(&self) -> Option<Told> {
        let page = self.timers.dead(&self.partition, None, None, 1).await;
        let dead = page.ok()?.dead.into_iter().next()?;
        self.ask(VerbName::Requeue, dead.kind, &dead.reference);
        Some(match self.timers.requeue(&self.partition, &dead.id).await {
            Ok(None) => ok(Outcome::NotFound, 0),
            Ok(Some(scheduled)) => told_of(Ok(scheduled)),
            Err(error) => failed(&error),
        })
    }

    async fn write(&self) -> Option<Told> {
        self.ask(VerbName::Write, self.kind, &self.reference);
        let (key, value) = if matches!(self.what, What::WriteMalformed) {
            (TimerKey::lane_due_end(self.kind, self.due_ms), "malformed")
        } else {
            let key = TimerKey {
                kind: self.kind,
                due_ms: self.due_ms,
                generation: self.generation,
                reference: self.reference.clone(),
            };
            (key.encode(), "no header")
        };
        let batch = Batch::new().put(key, value);
        Some(
            match self.timers.store().apply(&self.partition, batch).await {
                Ok(BatchOutcome::Committed) => ok(Outcome::Written, 0),
                Ok(_) => ok(Outcome::NotFound, 0),
                Err(error) => failed(&error.into()),
            },
        )
    }
}

fn ok(outcome: Outcome, generation: u64) -> Told {
    Told::Ok {
        outcome,
        generation,
    }
}

fn told_of(done: Result<Scheduled, TimerError>) -> Told {
    match done {
        Ok(scheduled) => ok(scheduled.outcome.into(), scheduled.generation),
        Err(error) => failed(&error),
    }
}

fn failed(error: &TimerError) -> Told {
    let is_unknown = |error: &StoreError| error.kind() == StoreErrorKind::Unknown;
    match error {
        TimerError::Store(error) if is_unknown(error) => Told::Unknown,
        TimerError::NotFound => ok(Outcome::NotFound, 0),
        error => Told::Fail {
            why: error.to_string().into(),
        },
    }
}

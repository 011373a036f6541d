//! What clients ask for, and what they are told.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use dueline::rows::TimerKey;
use dueline::store::{Batch, BatchOutcome, Partition, StoreError, StoreErrorKind};
use dueline::timers::{Change, Policy, Scheduled, Timer, TimerError, Timers};
use dueline_history::{Occurrence, Outcome, Told, Verb, VerbName, What};

use crate::disk::octets;
use crate::plan::{VerbSpec, VerbWhat};
use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;

/// Requests whose outcome is not known: their clients may ask again.
#[derive(Clone, Debug, Default)]
pub struct Doubts(Arc<Mutex<Vec<(VerbSpec, u32)>>>);

impl Doubts {
    /// Takes those that there are.
    pub fn take(&self) -> Vec<(VerbSpec, u32)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, verb: VerbSpec, retries: u32) {
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.push((verb, retries));
    }
}

/// One request. However it ends, its client is told: nothing for certain, if its server dies.
pub struct Request {
    pub number: u64,
    pub actor: Actor,
    pub recorder: Recorder,
    pub verb: VerbSpec,
    pub retries: u32,
    pub doubts: Doubts,
    /// Whether it was taken down what is asked for.
    asked: bool,
    told: bool,
}

impl Request {
    /// Notes that it is asked for.
    pub fn new(
        number: u64,
        actor: &Actor,
        recorder: &Recorder,
        (verb, retries): (VerbSpec, u32),
        doubts: &Doubts,
        now_ms: u64,
    ) -> Self {
        let names_later = matches!(
            verb.what,
            VerbWhat::Requeue | VerbWhat::Purge | VerbWhat::Many { .. } | VerbWhat::Stale { .. }
        );
        if !names_later {
            recorder.event(actor, What::Verb(invoked(number, &verb, now_ms)));
        }
        Self {
            number,
            actor: actor.clone(),
            recorder: recorder.clone(),
            verb,
            retries,
            doubts: doubts.clone(),
            asked: !names_later,
            told: false,
        }
    }

    /// Carries it out.
    pub async fn run(mut self, timers: Timers, now_ms: u64) {
        match self.verb.what.clone() {
            VerbWhat::Requeue | VerbWhat::Purge => return self.run_on_dead(timers, now_ms).await,
            VerbWhat::Many {
                timers: many,
                payload,
            } => return self.run_many(timers, now_ms, many, payload).await,
            VerbWhat::Stale { change } => return self.run_stale(timers, now_ms, change).await,
            _ => {}
        }
        let done = perform(&timers, &self.verb, now_ms).await;
        self.tell_of(done);
    }

    /// Finds a dead timer first: it is what is asked for.
    async fn run_on_dead(mut self, timers: Timers, now_ms: u64) {
        let partition = partition(self.verb.partition);
        let page = timers.dead(&partition, None, None, 1).await;
        let Some(dead) = page.ok().and_then(|page| page.dead.into_iter().next()) else {
            self.told = true;
            return;
        };
        let mut verb = invoked(self.number, &self.verb, now_ms);
        verb.kind = dead.kind.0;
        verb.reference = octets(&dead.reference);
        self.recorder.event(&self.actor, What::Verb(verb));
        self.asked = true;
        let done = if matches!(self.verb.what, VerbWhat::Purge) {
            let purged = timers.purge(&partition, &dead.id).await;
            purged.map(|purged| match purged {
                true => (Outcome::Removed, dead.generation),
                false => (Outcome::NotFound, 0),
            })
        } else {
            let requeued = timers.requeue(&partition, &dead.id).await;
            requeued.map(|requeued| requeued.as_ref().map_or((Outcome::NotFound, 0), of))
        };
        self.tell_of(done);
    }

    /// Schedules many at once. Each is a request of its own to whoever reads the history: the timers
    /// that were acknowledged are noted, and must have been there.
    async fn run_many(self, timers: Timers, now_ms: u64, many: Vec<(String, i64)>, payload: Bytes) {
        let partition = partition(self.verb.partition);
        let kind = self.verb.kind;
        let asked = many.iter().map(|(reference, due_in_ms)| {
            let timer = Timer::new(kind, reference.clone())
                .due_at(at(now_ms, *due_in_ms))
                .payload(payload.clone())
                .named();
            (timer, Policy::Replace)
        });
        let answers = timers.schedule_many(&partition, asked.collect()).await;
        for ((reference, _), answer) in many.iter().zip(answers) {
            let Ok(scheduled) = answer else { continue };
            let occurrence = Occurrence {
                kind: kind.0,
                reference: octets(reference.as_bytes()),
                generation: scheduled.generation,
            };
            self.recorder
                .promised(octets(partition.as_bytes()), occurrence);
        }
    }

    /// Asks for a change of a generation that the timer is not.
    async fn run_stale(self, timers: Timers, now_ms: u64, change: u8) {
        let partition = partition(self.verb.partition);
        let (kind, reference) = (self.verb.kind, Bytes::from(self.verb.reference.clone()));
        let Ok(Some(view)) = timers.get(&partition, kind, &reference).await else {
            return;
        };
        // No process draws it within a lifetime.
        let other = view.generation ^ (1 << 62);
        let due_ms = at(now_ms, 1_000);
        let did = match change {
            0 => {
                let cancelled = timers.cancel(&partition, kind, &reference, Some(other));
                cancelled.await.is_ok_and(|cancelled| cancelled.is_some())
            }
            1 => {
                let moved = timers.reschedule(&partition, kind, &reference, due_ms, Some(other));
                moved.await.is_ok()
            }
            _ => {
                let timer = Timer::new(kind, reference).due_at(due_ms).named();
                let replaced = timers.schedule_if_match(&partition, timer, other);
                replaced.await.is_ok()
            }
        };
        if did {
            self.recorder
                .wrong("a generation was changed by a verb that names another");
        }
    }

    fn tell_of(&mut self, done: Result<(Outcome, u64), TimerError>) {
        let told = match done {
            Ok((outcome, generation)) => Told::Ok {
                outcome,
                generation,
            },
            Err(TimerError::Store(error)) if error.kind() == StoreErrorKind::Unknown => {
                Told::Unknown
            }
            Err(TimerError::NotFound) => Told::Ok {
                outcome: Outcome::NotFound,
                generation: 0,
            },
            Err(error) => Told::Fail {
                why: Cow::Owned(error.to_string()),
            },
        };
        self.tell(told);
    }

    fn tell(&mut self, told: Told) {
        self.told = true;
        if told == Told::Unknown {
            self.recorder.mark("a client is left in doubt");
            if let Some(left) = self.retries.checked_sub(1) {
                self.doubts.push(self.verb.clone(), left);
            }
        }
        let request = self.number;
        self.recorder
            .event(&self.actor, What::Told { request, told });
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.asked && !self.told {
            self.tell(Told::Unknown);
        }
    }
}

impl VerbWhat {
    /// On whose behalf a request of this number commits: one of many timers has a commit for each, and none
    /// of them is the request's own.
    pub fn tag(&self, number: u64) -> Tag {
        match self {
            Self::Many { .. } => Tag::Request(0),
            _ => Tag::Request(number),
        }
    }
}

/// The partition of this number.
pub fn partition(number: u64) -> Partition {
    Partition::new(format!("p{number}")).unwrap_or_else(|_| unreachable!("a short name"))
}

fn at(now_ms: u64, in_ms: i64) -> u64 {
    now_ms.saturating_add_signed(in_ms)
}

fn invoked(request: u64, spec: &VerbSpec, now_ms: u64) -> Verb {
    let (verb, due_in_ms) = match &spec.what {
        VerbWhat::Schedule { due_in_ms, .. } => (VerbName::Schedule, Some(*due_in_ms)),
        VerbWhat::Cancel => (VerbName::Cancel, None),
        VerbWhat::Reschedule { due_in_ms } => (VerbName::Reschedule, Some(*due_in_ms)),
        VerbWhat::Change { .. } => (VerbName::Change, None),
        VerbWhat::FireNow => (VerbName::FireNow, None),
        VerbWhat::Get => (VerbName::Get, None),
        VerbWhat::Pause => (VerbName::Pause, None),
        VerbWhat::Resume => (VerbName::Resume, None),
        VerbWhat::Requeue => (VerbName::Requeue, None),
        VerbWhat::Purge => (VerbName::Purge, None),
        VerbWhat::Many { .. } | VerbWhat::Stale { .. } => (VerbName::Write, None),
        VerbWhat::Malformed { due_in_ms } | VerbWhat::Headless { due_in_ms } => {
            (VerbName::Write, Some(*due_in_ms))
        }
    };
    let (policy, named) = match &spec.what {
        VerbWhat::Schedule { policy, named, .. } => (Some((*policy).into()), *named),
        _ => (None, true),
    };
    Verb {
        request,
        partition: octets(partition(spec.partition).as_bytes()),
        kind: spec.kind.0,
        reference: octets(spec.reference.as_bytes()),
        verb,
        policy,
        named,
        due_ms: due_in_ms.map(|in_ms| at(now_ms, in_ms)),
    }
}

fn of(scheduled: &Scheduled) -> (Outcome, u64) {
    (scheduled.outcome.into(), scheduled.generation)
}

async fn perform(
    timers: &Timers,
    spec: &VerbSpec,
    now_ms: u64,
) -> Result<(Outcome, u64), TimerError> {
    let partition = partition(spec.partition);
    let (kind, reference) = (spec.kind, Bytes::from(spec.reference.clone()));
    match &spec.what {
        VerbWhat::Schedule {
            due_in_ms,
            policy,
            named,
            payload,
        } => {
            let mut timer = Timer::new(kind, reference)
                .due_at(at(now_ms, *due_in_ms))
                .payload(payload.clone());
            if *named {
                timer = timer.named();
            }
            timers
                .schedule(&partition, timer, *policy)
                .await
                .map(|scheduled| of(&scheduled))
        }
        VerbWhat::Cancel => {
            let cancelled = timers.cancel(&partition, kind, &reference, None).await?;
            Ok(cancelled.map_or((Outcome::NotFound, 0), |cancelled| {
                (Outcome::Removed, cancelled.generation)
            }))
        }
        VerbWhat::Reschedule { due_in_ms } => {
            let due_ms = at(now_ms, *due_in_ms);
            let moved = timers.reschedule(&partition, kind, &reference, due_ms, None);
            moved.await.map(|scheduled| of(&scheduled))
        }
        VerbWhat::Change { payload } => {
            let change = Change {
                payload: Some(payload.clone()),
                ..Change::default()
            };
            let changed = timers.update(&partition, kind, &reference, change, None);
            changed.await.map(|scheduled| of(&scheduled))
        }
        VerbWhat::FireNow => {
            let fired = timers.fire_now(&partition, kind, &reference).await;
            fired.map(|scheduled| of(&scheduled))
        }
        VerbWhat::Get => {
            let view = timers.get(&partition, kind, &reference).await?;
            Ok(view.map_or((Outcome::NotFound, 0), |view| {
                (Outcome::Found, view.generation)
            }))
        }
        VerbWhat::Pause => written(timers.pause(&partition, kind).await?),
        VerbWhat::Resume => written(timers.resume(&partition, kind).await?),
        VerbWhat::Requeue | VerbWhat::Purge | VerbWhat::Many { .. } | VerbWhat::Stale { .. } => {
            Err(TimerError::NotFound)
        }
        VerbWhat::Malformed { due_in_ms } => {
            let short = TimerKey::lane_due_end(kind, at(now_ms, *due_in_ms));
            write(timers, &partition, short, "malformed").await
        }
        VerbWhat::Headless { due_in_ms } => {
            let key = TimerKey {
                kind,
                due_ms: at(now_ms, *due_in_ms),
                generation: timers.runtime().draw_generation(),
                reference,
            };
            write(timers, &partition, key.encode(), "no header").await
        }
    }
}

fn written(did: bool) -> Result<(Outcome, u64), TimerError> {
    Ok(if did {
        (Outcome::Written, 0)
    } else {
        (Outcome::NotFound, 0)
    })
}

async fn write(
    timers: &Timers,
    partition: &Partition,
    key: Bytes,
    value: &'static str,
) -> Result<(Outcome, u64), TimerError> {
    let batch = Batch::new().put(key, value);
    match timers.store().apply(partition, batch).await? {
        BatchOutcome::Committed => Ok((Outcome::Written, 0)),
        _ => Err(StoreError::corrupt("a guard was lost that was never asked for").into()),
    }
}

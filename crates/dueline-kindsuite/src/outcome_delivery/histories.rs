//! Random histories of an outbox with a sink and one with a relay: whatever happens between any two calls
//! of the store, the count is right, what waits has its timer, nothing is sent before what is in front of
//! it, a target absorbs each message once and in order, and in the end nothing is lost.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{
    Delivery, DeliveryOptions, OUTCOME_DELIVERY, Outbox, OutboxName, Outcome, OutcomeDelivery,
    Relay, RelayMessage, Sink, SinkError,
};
use dueline::store::Partition;
use dueline::timers::{Registration, RetryPolicy, TimerKind, Timers};
use dueline_testkit::model::Random;

use super::judge::{FERRY, Judge, MAIL, source};
use crate::storm::{Ask, Change, Rows, Scenario, Tally, play};

/// How often a sink does not take what it is sent, in percent; drawn by the first call, 0 at the end.
struct Mood {
    random: Random,
    fails_percent: Option<u64>,
}

#[derive(Clone)]
struct Post {
    judge: Arc<Mutex<Judge>>,
    mood: Arc<Mutex<Mood>>,
    sent: u64,
}

impl Post {
    fn new(tally: &Tally) -> Self {
        Self {
            judge: Arc::new(Mutex::new(Judge::new(tally))),
            mood: Arc::new(Mutex::new(Mood {
                random: Random::new(0),
                fails_percent: None,
            })),
            sent: 0,
        }
    }

    fn next_id(&mut self) -> Bytes {
        self.sent += 1;
        Bytes::from(format!("id-{}", self.sent))
    }

    fn outcome(&mut self) -> Outcome {
        Outcome {
            id: self.next_id(),
            body: "body".into(),
        }
    }

    /// A message whose target remembers the last one, so that each of them shows.
    fn message(&mut self, target: u64) -> Outcome {
        let id = self.next_id();
        let target = Partition::new(format!("t{target}")).unwrap();
        RelayMessage::to(target)
            .put("last", id.clone())
            .put(id.clone(), "absorbed")
            .outcome(id)
            .unwrap()
    }
}

impl Sink for Post {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        let mut mood = self.mood.lock().unwrap();
        let percent = mood.fails_percent.unwrap_or(0);
        let fails = mood.random.chance(percent);
        let what = mood.random.below(10);
        drop(mood);
        // One that hangs may have taken it all the same.
        let hangs = fails && what < 2;
        self.judge.lock().unwrap().called(delivery, !fails || hangs);
        Box::pin(async move {
            match what {
                _ if hangs => pending().await,
                _ if !fails => Ok(()),
                2 => Err(SinkError::refused("never")),
                3 | 4 => Err(SinkError::unavailable("not now").retry_after_ms(3_000)),
                _ => Err(SinkError::failed("no")),
            }
        })
    }
}

impl Scenario for Post {
    fn partitions(&self) -> Vec<Partition> {
        vec![source()]
    }

    fn has_short_pages(&self) -> bool {
        true
    }

    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)> {
        let runtime = timers.runtime().clone();
        let mut random = Random::new(runtime.random_u64());
        let mut mood = self.mood.lock().unwrap();
        if mood.fails_percent.is_none() {
            mood.fails_percent = Some(random.pick(&[0, 10, 40, 90]));
            mood.random = Random::new(random.next_u64());
        }
        drop(mood);
        let options = DeliveryOptions::new()
            .rows_max(random.pick(&[1, 2, 3, 80]))
            .call_deadline_ms(700)
            .run_budget_ms(random.pick(&[0, 1_000, 10_000]))
            .retry(RetryPolicy {
                attempts_max: Some(4),
                initial_ms: 300,
                max_ms: 4_000,
                jitter_percent: 20,
            });
        let relay = Relay::new(Arc::clone(timers.store())).options(options);
        let delivery = OutcomeDelivery::new(runtime)
            .sink_with(OutboxName::new(MAIL).unwrap(), self.clone(), options)
            .relay(OutboxName::new(FERRY).unwrap(), relay);
        vec![(OUTCOME_DELIVERY, delivery.registration())]
    }

    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask {
        let outbox = |name: &'static str| {
            Outbox::new(
                client.clone(),
                partition.clone(),
                OutboxName::new(name).unwrap(),
            )
        };
        let (mail, ferry) = (outbox(MAIL), outbox(FERRY));
        let sequence = random.below(self.sent + 1);
        match random.below(12) {
            0 => Box::pin(async move { drop(mail.requeue(sequence).await) }),
            1 => Box::pin(async move { drop(mail.set_aside(sequence, "by hand").await) }),
            2 => Box::pin(async move { drop(mail.wake().await) }),
            3 => Box::pin(async move { drop(ferry.wake().await) }),
            4..8 => {
                let outcomes = (0..random.below(4)).map(|_| self.outcome());
                let outcomes: Vec<Outcome> = outcomes.collect();
                Box::pin(async move { drop(mail.append(&outcomes).await) })
            }
            _ => {
                let targets: Vec<u64> = (0..random.below(4)).map(|_| random.below(4)).collect();
                let messages = targets.into_iter().map(|target| self.message(target));
                let messages: Vec<Outcome> = messages.collect();
                Box::pin(async move { drop(ferry.append(&messages).await) })
            }
        }
    }

    fn judge(&mut self, change: &Change<'_>) -> Vec<String> {
        let mut judge = self.judge.lock().unwrap();
        judge.committed(change);
        std::mem::take(&mut judge.broken)
    }

    fn calm(&mut self) {
        self.mood.lock().unwrap().fails_percent = Some(0);
    }

    fn judge_end(&mut self, _: &Rows) -> Vec<String> {
        Vec::new()
    }

    fn judge_end_of_all(&mut self, all: &BTreeMap<Partition, Rows>) -> Vec<String> {
        let mut judge = self.judge.lock().unwrap();
        judge.conclude(all);
        std::mem::take(&mut judge.broken)
    }
}

pub fn random_histories_lose_nothing_and_keep_the_order() {
    let tally = Tally::default();
    play(120, || Post::new(&tally));
    tally.assert_at_least(100, &["appended", "called", "absorbed", "set aside"]);
}

/// The same for whoever else plays scenarios.
pub fn scenario(tally: &Tally) -> Box<dyn Scenario> {
    Box::new(Post::new(tally))
}

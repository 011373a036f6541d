//! Random histories of reservations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{
    Delivery, OUTCOME_DELIVERY, OutboxName, OutcomeDelivery, Sink, SinkError,
};
use dueline::kinds::reservation_reconcile::{ReservationId, Reservations, Settlement, Terms};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::{Registration, TimerKind, Timers};
use dueline_testkit::model::{Random, Source};

use super::setting::outcome_of;
use crate::storm::{Ask, Change, Scenario, Tally, play};

const ROW: &[u8] = b"b\0\x09r";
const OUTCOME: &[u8] = b"b\0\x08o\x04mail";
/// Written by whoever commits, in the batch of the commit.
const PAID: &[u8] = b"paid/";

const PENDING: u8 = 1;
const COMMITTED: u8 = 2;
const ABANDONED: u8 = 4;

/// Three ids are reserved again and again, settled by several callers, abandoned, forgotten and purged.
pub fn random_histories_end_every_reservation_once() {
    let tally = Tally::default();
    play(300, || Rush {
        tally: tally.clone(),
        ..Rush::default()
    });
    tally.assert_at_least(
        100,
        &[
            "committed",
            "aborted",
            "abandoned",
            "extended",
            "purged",
            "forgotten",
            "told",
        ],
    );
}

/// The same for whoever else plays scenarios.
pub fn scenario(tally: &Tally) -> Box<dyn Scenario> {
    Box::new(Rush {
        tally: tally.clone(),
        ..Rush::default()
    })
}

#[derive(Debug, Default)]
struct Rush {
    tally: Tally,
    /// Serial and id of every reservation that was made.
    made: Vec<(u64, Bytes)>,
    /// The ways in which each has ended, by its serial.
    ended: BTreeMap<u64, u8>,
    /// Ids of outcomes that were written.
    told: BTreeSet<Bytes>,
    mailbox: Arc<Mutex<Arrived>>,
}

/// Takes what is delivered; three in four are lost on the way for as long as it storms.
#[derive(Debug, Default)]
struct Arrived {
    ids: BTreeSet<Bytes>,
    calls: u64,
    is_calm: bool,
}

struct Mailbox(Arc<Mutex<Arrived>>);

impl Sink for Mailbox {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        let mut arrived = self.0.lock().unwrap();
        arrived.calls += 1;
        let taken = arrived.is_calm || arrived.calls.is_multiple_of(4);
        if taken {
            arrived.ids.insert(delivery.id.clone());
        }
        let said = if taken {
            Ok(())
        } else {
            Err(SinkError::unavailable("lost"))
        };
        Box::pin(std::future::ready(said))
    }
}

/// A row of a reservation, as FORMAT.md has it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    stage: u8,
    serial: u64,
    commit_by_ms: u64,
    deadline_ms: u64,
    ended_at_ms: u64,
    keep_ms: u64,
    has_outbox: bool,
}

fn number(value: &Value, at: usize) -> u64 {
    u64::from_be_bytes(value[at..at + 8].try_into().unwrap())
}

fn seen(value: &Value) -> Seen {
    assert_eq!(value[0], 1);
    Seen {
        stage: value[1],
        serial: number(value, 2),
        commit_by_ms: number(value, 18),
        deadline_ms: number(value, 26),
        ended_at_ms: number(value, 34),
        keep_ms: number(value, 42),
        has_outbox: value[50] > 0,
    }
}

fn paid(serial: u64) -> Key {
    Bytes::from([PAID, &serial.to_be_bytes()].concat())
}

impl Scenario for Rush {
    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)> {
        let delivery = OutcomeDelivery::new(timers.runtime().clone());
        let delivery = delivery.otherwise(Mailbox(Arc::clone(&self.mailbox)));
        vec![
            Reservations::new(timers.clone()).entry(),
            (OUTCOME_DELIVERY, delivery.registration()),
        ]
    }

    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask {
        let (client, partition) = (client.clone(), partition.clone());
        let reservations = Reservations::new(client.clone());
        let verb = random.below(10);
        if verb < 3 || self.made.is_empty() {
            let id = ReservationId::new(random.pick(&["x", "y", "z"])).unwrap();
            let terms = random_terms(random);
            return Box::pin(async move {
                drop(reservations.reserve(&partition, &id, &terms).await);
            });
        }
        let back = random.below(4.min(self.made.len() as u64));
        let place = self.made.len() - 1 - usize::try_from(back).unwrap();
        let (serial, id) = self.made[place].clone();
        let id = ReservationId::new(id).unwrap();
        let within_ms = random.pick(&[0, 900, 20_000]);
        Box::pin(async move {
            match verb {
                3..6 => pay(&client, &partition, &id, serial).await,
                6 | 7 => drop(reservations.abort(&partition, &id, serial, "no").await),
                8 => {
                    let detail = Bytes::from_static(b"ticketed");
                    let extended = reservations.extend(&partition, &id, serial, detail, within_ms);
                    drop(extended.await);
                }
                _ => drop(reservations.forget(&partition, &id, serial).await),
            }
        })
    }

    fn judge(&mut self, change: &Change<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        let mut told_here = BTreeSet::new();
        for (key, before, after) in change.of_prefix(OUTCOME) {
            let id = |value: &Value| outcome_of(value).0;
            let (before, after) = (before.as_ref().map(id), after.as_ref().map(id));
            let Some(id) = after.clone().filter(|_| before.is_none()) else {
                // It was delivered, or failed and waits.
                let arrived = self.mailbox.lock().unwrap();
                if after != before && !before.is_some_and(|id| arrived.ids.contains(&id)) {
                    broken.push(format!("an outcome is lost: {key:?}"));
                }
                continue;
            };
            if !self.told.insert(id.clone()) {
                broken.push(format!("told twice: {id:?}"));
            }
            self.tally.count("told");
            told_here.insert(id);
        }
        for (key, before, after) in change.of_prefix(ROW) {
            let id = key.slice(ROW.len()..);
            let before = before.as_ref().map(seen);
            let after = after.as_ref().map(seen);
            let what = format!("{id:?} {before:?} -> {after:?} at {}", change.now_ms);
            let found = self.judge_row(change, &id, before.as_ref(), after.as_ref());
            let ended = match found {
                Ok(ended) => ended,
                Err(rule) => {
                    broken.push(format!("{rule}: {what}"));
                    continue;
                }
            };
            let is_told = before.as_ref().filter(|_| ended).is_some_and(|row| {
                let outcome = format!(".{:016x}", row.serial);
                let outcome = [id.as_ref(), outcome.as_bytes()].concat();
                told_here.remove(outcome.as_slice()) != row.has_outbox
            });
            if is_told {
                broken.push(format!("an end and its outcome are not one: {what}"));
            }
        }
        if !told_here.is_empty() {
            broken.push(format!("told without an end: {told_here:?}"));
        }
        broken
    }

    fn calm(&mut self) {
        self.mailbox.lock().unwrap().is_calm = true;
    }

    fn judge_end(&mut self, rows: &BTreeMap<Key, Value>) -> Vec<String> {
        let mut broken = Vec::new();
        let arrived = &self.mailbox.lock().unwrap().ids;
        if *arrived != self.told {
            broken.push(format!("of {:?} {arrived:?} arrived", self.told));
        }
        for (serial, id) in &self.made {
            let end = self.ended.get(serial);
            if end.is_none() {
                broken.push(format!("{id:?} never ended"));
            }
            if rows.contains_key(&paid(*serial)) != (end == Some(&COMMITTED)) {
                broken.push(format!("{id:?} ended as {end:?}, which its payment is not"));
            }
        }
        for (key, value) in rows.iter().filter(|(key, _)| key.starts_with(ROW)) {
            let row = seen(value);
            if row.stage == PENDING || row.keep_ms != u64::MAX {
                broken.push(format!("{key:?} is left: {row:?}"));
            }
        }
        broken
    }
}

impl Rush {
    /// One change of a reservation's row: whether it has ended by it.
    fn judge_row(
        &mut self,
        change: &Change<'_>,
        id: &Bytes,
        before: Option<&Seen>,
        after: Option<&Seen>,
    ) -> Result<bool, &'static str> {
        match (before, after) {
            (None, Some(after)) => {
                self.made.push((after.serial, id.clone()));
                (after.stage == PENDING)
                    .then_some(false)
                    .ok_or("made otherwise than pending")
            }
            (Some(before), Some(after)) if before.serial != after.serial => {
                Err("another took its place")
            }
            (Some(before), after) if before.stage == PENDING => {
                let is_paid = change.after.contains_key(&paid(before.serial));
                let stage = match after {
                    Some(after) if after.stage == PENDING => {
                        self.tally.count("extended");
                        return (after.deadline_ms >= before.deadline_ms)
                            .then_some(false)
                            .ok_or("its deadline came nearer");
                    }
                    Some(after) => after.stage,
                    // Without retention the row does not say how it ended; its effect does.
                    None if before.keep_ms != 0 => return Err("gone without an end"),
                    None if is_paid => COMMITTED,
                    None if change.source == Source::Engine => ABANDONED,
                    None => 3,
                };
                self.tally.count(match stage {
                    COMMITTED => "committed",
                    ABANDONED => "abandoned",
                    _ => "aborted",
                });
                if self.ended.insert(before.serial, stage).is_some() {
                    return Err("it ended twice");
                }
                judge_end_of(change, before, stage, is_paid)
            }
            (Some(_), Some(_)) => Err("an end was replaced"),
            (Some(before), None) if change.source == Source::Engine => {
                self.tally.count("purged");
                let kept_until_ms = before.ended_at_ms.saturating_add(before.keep_ms);
                (kept_until_ms <= change.now_ms)
                    .then_some(false)
                    .ok_or("purged before its time")
            }
            (Some(_) | None, None) => {
                self.tally.count("forgotten");
                Ok(false)
            }
        }
    }
}

/// An end is in its time, by whoever may cause it, and paid for if it is a commit.
fn judge_end_of(
    change: &Change<'_>,
    before: &Seen,
    stage: u8,
    is_paid: bool,
) -> Result<bool, &'static str> {
    if is_paid != (stage == COMMITTED) {
        return Err("an end and its effect are not one");
    }
    if (stage == ABANDONED) != (change.source == Source::Engine) {
        return Err("abandoned by a caller, or settled by a timer");
    }
    let in_time = match stage {
        COMMITTED => change.now_ms <= before.commit_by_ms,
        ABANDONED => change.now_ms >= before.deadline_ms,
        _ => true,
    };
    in_time.then_some(true).ok_or("an end out of its time")
}

fn random_terms(random: &mut Random) -> Terms {
    let mut terms = Terms::commit_within_ms(random.pick(&[0, 900, 20_000, 60_000, 60_000]))
        .skew_ms(random.pick(&[0, 1, 1_000]));
    if random.chance(60) {
        terms = terms.kept_for_ms(random.pick(&[0, 1, 5_000, 50_000]));
    }
    if random.chance(60) {
        terms = terms.outbox(OutboxName::new("mail").unwrap());
    }
    terms
}

/// A commit in one batch with what it pays for. One that is in doubt is planned again.
async fn pay(client: &Timers, partition: &Partition, id: &ReservationId, serial: u64) {
    let reservations = Reservations::new(client.clone());
    for _ in 0..3 {
        let plan = reservations.plan_commit(&**client.store(), partition, id, serial);
        let Ok(planned) = plan.await else {
            continue;
        };
        if !matches!(planned.outcome, Settlement::Settled(_)) {
            return;
        }
        let batch = Batch::new().put(paid(serial), "").append(planned.batch);
        if let Ok(outcome) = client.store().apply(partition, batch).await
            && outcome.is_committed()
        {
            return;
        }
    }
}

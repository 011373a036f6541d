//! What the client does.

use dueline::rows::TimerKey;
use dueline::store::{Batch, Key, Partition};
use dueline::timers::{Change, ListQuery, Policy, Timer, TimerError, TimerKind, Timers};
use dueline::{BoxFuture, Bytes};

use super::Script;
use super::driver::KINDS;
use super::handler::payload;

const REFERENCES: [&str; 4] = ["a", "b", "c", "d"];
const POLICIES: [Policy; 3] = [Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent];

/// A verb, and how it ended.
pub(super) type Verb = BoxFuture<'static, String>;

fn ended<T>(verb: &str, result: &Result<T, TimerError>) -> String {
    match result {
        Ok(_) => format!("{verb}: done"),
        Err(error) => {
            let error = format!("{error:?}");
            let word = error.split(|c: char| !c.is_alphanumeric()).next();
            format!("{verb}: {}", word.unwrap_or_default())
        }
    }
}

fn reference(script: &mut Script<'_>) -> Bytes {
    Bytes::from_static(script.pick(&REFERENCES).as_bytes())
}

pub(super) fn schedule(client: &Timers, partition: &Partition, script: &mut Script<'_>) -> Verb {
    let now_ms = client.runtime().now_ms();
    let due_ms = match script.next() {
        early @ 0..64 => now_ms - u64::from(early) * 10,
        later => now_ms + u64::from(later - 64) * 20,
    };
    let mut timer = Timer::new(script.pick(&KINDS), reference(script))
        .due_at(due_ms)
        .payload(payload(script.next(), script.next()));
    if !script.next().is_multiple_of(3) {
        timer = timer.named();
    }
    let policy = script.pick(&POLICIES);
    let (client, partition) = (client.clone(), partition.clone());
    Box::pin(async move {
        let scheduled = client.schedule(&partition, timer, policy).await;
        match &scheduled {
            Ok(done) => format!("schedule {policy:?}: {:?}", done.outcome),
            Err(_) => ended("schedule", &scheduled),
        }
    })
}

/// Every other verb.
pub(super) fn other(client: &Timers, partition: &Partition, script: &mut Script<'_>) -> Verb {
    let (client, partition) = (client.clone(), partition.clone());
    let (what, kind) = (script.next() % 11, script.pick(&KINDS));
    let name = reference(script);
    let number = script.next();
    let due_ms = client.runtime().now_ms() + u64::from(number) * 10;
    Box::pin(async move {
        match what {
            0 => ended(
                "cancel",
                &client.cancel(&partition, kind, &name, None).await,
            ),
            1 => {
                let cancelled = client
                    .cancel_unless_claimed(&partition, kind, &name, None)
                    .await;
                ended("cancel unless claimed", &cancelled)
            }
            2 => ended("pause", &client.pause(&partition, kind).await),
            3 => ended("resume", &client.resume(&partition, kind).await),
            4 => {
                let moved = client.reschedule(&partition, kind, &name, due_ms, None);
                ended("reschedule", &moved.await)
            }
            5 => {
                let change = Change {
                    payload: Some(payload(number, number / 8)),
                    ..Change::default()
                };
                ended(
                    "update",
                    &client.update(&partition, kind, &name, change, None).await,
                )
            }
            6 | 7 => if_match(&client, &partition, (kind, name), due_ms).await,
            8 => dead(&client, &partition, true).await,
            9 => look(&client, &partition, kind, number).await,
            _ => dead(&client, &partition, false).await,
        }
    })
}

/// Replaces or cancels a timer as it was seen.
async fn if_match(
    client: &Timers,
    partition: &Partition,
    (kind, reference): (TimerKind, Bytes),
    due_ms: u64,
) -> String {
    let Ok(Some(seen)) = client.get(partition, kind, &reference).await else {
        return "if match: not found".to_owned();
    };
    let generation = seen.generation;
    if seen.attempt > 0 {
        let cancelled = client.cancel(partition, kind, &reference, Some(generation));
        return ended("cancel if match", &cancelled.await);
    }
    let timer = Timer::new(kind, reference).due_at(due_ms);
    let timer = timer.payload(payload(0, 0)).named();
    let replaced = client.schedule_if_match(partition, timer, generation);
    ended("replace if match", &replaced.await)
}

/// Takes the first dead timer away, or gives it another life.
async fn dead(client: &Timers, partition: &Partition, is_purged: bool) -> String {
    let page = client.dead(partition, None, None, 1).await;
    let Ok(page) = page else {
        return ended("dead", &page);
    };
    match page.dead.first() {
        None => "dead: none".to_owned(),
        Some(dead) if is_purged => ended("purge", &client.purge(partition, &dead.id).await),
        Some(dead) => ended("requeue", &client.requeue(partition, &dead.id).await),
    }
}

/// Reads by pages: names or the lane, and what was set aside.
async fn look(client: &Timers, partition: &Partition, kind: TimerKind, number: u8) -> String {
    let mut query = ListQuery::new(kind);
    query.limit = 2;
    query.prefix = number.is_multiple_of(2).then(Bytes::new);
    loop {
        let page = client.list(partition, &query).await;
        match page {
            Ok(page) if page.next.is_some() => query.after = page.next,
            Ok(_) => break,
            Err(_) => return ended("list", &page),
        }
    }
    ended("quarantined", &client.quarantined(partition, None, 1).await)
}

/// A row that no verb writes: one whose key is too short, or one whose header does not decode.
pub(super) fn malformed_row(now_ms: u64, generation: u64, script: &mut Script<'_>) -> Batch {
    let kind = script.pick(&KINDS);
    let (number, places) = (script.next(), usize::from(script.next()) % 20);
    let key = TimerKey {
        kind,
        due_ms: now_ms + u64::from(number % 16) * 100,
        generation,
        reference: reference(script),
    };
    let key = key.encode();
    let short = key.slice(..key.len().min(2 + places));
    Batch::new().put(short, Key::copy_from_slice(&[number; 3]))
}

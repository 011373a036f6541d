//! What requests do.

use dueline::rows::TimerKey;
use dueline::store::{Batch, Partition};
use dueline::timers::{Asked, Policy, Timer};
use dueline::{BoxFuture, Bytes};
use dueline_testkit::model::Random;
use dueline_worker::ObjectDriver;

use super::script::{KINDS, Op, UNKNOWN, payload, random_payload};

const REFERENCES: [&str; 4] = ["a", "b", "c", "d"];

/// One verb in one of these partitions.
pub fn random_verb(
    random: &mut Random,
    driver: &ObjectDriver,
    partition: Partition,
    traps: bool,
) -> BoxFuture<'static, ()> {
    let driver = driver.clone();
    let timers = driver.timers().clone();
    let kind = random.pick(&KINDS);
    let reference = Bytes::from_static(random.pick(&REFERENCES).as_bytes());
    let now_ms = timers.runtime().now_ms();
    let due_ms = match random.below(5) {
        0 => now_ms.saturating_sub(500),
        1 => now_ms,
        2 => now_ms + 1,
        3 => now_ms + 60_000,
        _ => now_ms + random.below(4_000),
    };
    let what = random.below(20);
    let policy = random.pick(&[Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent]);
    let mut timer = Timer::new(kind, reference.clone())
        .due_at(due_ms)
        .payload(random_payload(random, traps));
    if random.chance(60) {
        timer = timer.named();
    }
    Box::pin(async move {
        match what {
            0..11 => drop(timers.schedule(&partition, timer, policy).await),
            11 => {
                let others = REFERENCES
                    .iter()
                    .filter(|other| other.as_bytes() != reference);
                let others = others.map(|other| {
                    let timer = Timer::new(kind, *other).due_at(due_ms + 100);
                    timer.payload(payload(Op::Log, 0)).named()
                });
                let asked = std::iter::once(timer).chain(others).map(|timer| Asked {
                    timer,
                    policy,
                    if_match: None,
                });
                let asked: Vec<Asked> = asked.collect();
                drop(driver.schedule_all(&partition, &asked).await);
            }
            12..14 => drop(timers.cancel(&partition, kind, &reference, None).await),
            14 => drop(timers.pause(&partition, kind).await),
            15 => drop(timers.resume(&partition, kind).await),
            16 | 17 => drop(
                timers
                    .reschedule(&partition, kind, &reference, due_ms, None)
                    .await,
            ),
            18 => {
                let short = TimerKey::lane_due_end(kind, due_ms);
                let batch = Batch::new().put(short, "malformed");
                drop(timers.store().apply(&partition, batch).await);
            }
            _ => {
                let timer = Timer::new(UNKNOWN, reference).due_at(due_ms);
                drop(timers.schedule(&partition, timer, policy).await);
            }
        }
    })
}

//! What the client of a history does.

use dueline::rows::TimerKey;
use dueline::store::{Batch, Partition};
use dueline::timers::{Policy, Timer, Timers};
use dueline_testkit::model::Random;

use dueline_testkit::model::script::{KINDS, REFERENCES, random_payload};

/// One verb of the client, or a row that no verb makes.
pub fn random_verb(
    random: &mut Random,
    timers: Timers,
    partition: Partition,
) -> impl Future<Output = ()> + use<> {
    let kind = random.pick(&KINDS);
    let reference = dueline::Bytes::from_static(random.pick(&REFERENCES).as_bytes());
    let now_ms = timers.runtime().now_ms();
    let due_ms = match random.below(4) {
        0 => now_ms - 500,
        1 => now_ms,
        2 => now_ms + 1,
        _ => now_ms + random.below(4_000),
    };
    let what = random.below(20);
    let policy = random.pick(&[Policy::Replace, Policy::KeepEarliest, Policy::IfAbsent]);
    let mut timer = Timer::new(kind, reference.clone())
        .due_at(due_ms)
        .payload(random_payload(random));
    if random.chance(60) {
        timer = timer.named();
    }
    let generation = random.next_u64();
    async move {
        match what {
            0..12 => drop(timers.schedule(&partition, timer, policy).await),
            12..14 => drop(timers.cancel(&partition, kind, &reference, None).await),
            14 => drop(timers.pause(&partition, kind).await),
            15 => drop(timers.resume(&partition, kind).await),
            16 => drop(
                timers
                    .reschedule(&partition, kind, &reference, due_ms, None)
                    .await,
            ),
            17 => {
                if let Ok(page) = timers.dead(&partition, None, None, 1).await {
                    for dead in page.dead {
                        drop(timers.requeue(&partition, &dead.id).await);
                    }
                }
            }
            18 => {
                let short = TimerKey::lane_due_end(kind, due_ms);
                let batch = Batch::new().put(short, "malformed");
                drop(timers.store().apply(&partition, batch).await);
            }
            _ => {
                let key = TimerKey {
                    kind,
                    due_ms,
                    generation,
                    reference,
                };
                let batch = Batch::new().put(key.encode(), "no header");
                drop(timers.store().apply(&partition, batch).await);
            }
        }
    }
}

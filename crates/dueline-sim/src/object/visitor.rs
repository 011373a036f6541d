//! A request that runs what is due by itself, over all partitions and without the stored wakes, as whoever
//! holds the engine may; and what the reports of such ticks say.

use dueline::rows::{PauseKey, TimerKey, lane_head};
use dueline::runtime::Clock;
use dueline::store::{Partition, ReadStore, ScanRange};
use dueline::timers::{RunReport, TimerKind, run_due_with_state};
use dueline_history::{Tick, What};
use dueline_worker::ObjectDriver;

use super::world::{INSTANCE, ObjectWorld};
use crate::client::partition;
use crate::disk::octets;
use crate::tag::Tag;

impl ObjectWorld<'_> {
    /// Somebody comes by and runs what is due. Its ticks share one budget.
    pub(super) fn run_by_hand(&mut self) {
        let Some(instance) = self.instance() else {
            return;
        };
        let driver = instance.driver.clone();
        self.recorder.mark("what is due is run by hand");
        let number = self.begin_turn();
        let (budget, clock) = (self.node.budget, self.clock.clone());
        let (stage, actor) = (self.stage.recorder.clone(), self.actor.clone());
        let partitions = self.plan.world.partitions;
        let task = Box::pin(async move {
            let engine = driver.engine();
            let mut state = engine.start_tick(budget);
            let mut calls = Vec::new();
            for partition in (0..partitions).map(partition) {
                let open = open_kinds(&driver, &partition).await;
                let (began, began_ms) = (clock.monotonic(), engine.runtime().now_ms());
                let tick = run_due_with_state(engine, &partition, &mut state).await;
                let took = clock.monotonic().saturating_sub(began);
                let told = Tick::of(
                    (0, number * super::storage::TICKS_PER_ALARM + 1),
                    octets(partition.as_bytes()),
                    (
                        began_ms,
                        u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                    ),
                    &budget,
                    &tick.report,
                );
                stage.event(&actor, What::Tick(told));
                let said = (began_ms, &tick.report);
                if let Some(wrong) = overslept(&driver, &partition, &open, said).await {
                    stage.wrong(wrong);
                }
                calls.extend(tick.calls);
            }
            for call in calls {
                engine.settle(call.run().await).await;
            }
        });
        self.executor.spawn(INSTANCE, Tag::Turn(number), true, task);
    }
}

/// The kinds that run here and are not paused; those of which the storage refuses to tell are left out.
async fn open_kinds(driver: &ObjectDriver, partition: &Partition) -> Vec<TimerKind> {
    let registered = driver.engine().registry().iter().map(|(kind, _)| kind);
    let mut open = Vec::new();
    for kind in registered.chain([TimerKind::INVALID]) {
        let pause = PauseKey { kind }.encode();
        let paused = driver.store().get(partition, &pause).await;
        if matches!(paused, Ok(None)) {
            open.push(kind);
        }
    }
    open
}

/// What a driver without stored wakes would sleep through that goes by this report, if anything. A kind
/// that was paused when the tick began is not in it: whoever resumes it says so.
async fn overslept(
    driver: &ObjectDriver,
    partition: &Partition,
    open: &[TimerKind],
    (began_ms, report): (u64, &RunReport),
) -> Option<String> {
    let now_ms = driver.engine().runtime().now_ms();
    for kind in open.iter().copied() {
        let lane = ScanRange::new(TimerKey::lane_start(kind), TimerKey::lane_end(kind), 1);
        let page = driver.store().scan(partition, &lane).await.ok()?;
        let Some(head) = page.rows.first().and_then(|(key, _)| lane_head(key)) else {
            continue;
        };
        // The clock may have been set back meanwhile.
        let until_ms = head.due_ms.max(began_ms).max(now_ms);
        if report.next_wake_ms.is_none_or(|at_ms| at_ms > until_ms) {
            let next_ms = report.next_wake_ms;
            return Some(format!(
                "{kind:?} of {partition} is due at {}, the tick says {next_ms:?}, now {now_ms}",
                head.due_ms
            ));
        }
    }
    None
}

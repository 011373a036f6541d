//! A retry policy put to the test: timers that fail on demand, and a clock that only the program moves.
//!
//! Run it with `cargo run -p dueline-tokio --example retry_check`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use dueline::kinds::test_kind::{Fault, Script, TEST_KIND, TestKind, successes};
use dueline::memory::MemoryStore;
use dueline::store::Partition;
use dueline::timers::{Engine, Policy, Registry, RetryPolicy, TickBudget, run_due};
use dueline_testkit::{CommitFault, FaultStore, ManualClock, test_runtime};

/// The policy that the application uses for its own kinds: three attempts, 10 s and 20 s apart.
fn policy() -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(3),
        initial_ms: 10_000,
        max_ms: 60_000,
        jitter_percent: 0,
    }
}

/// Runs the check and tells what came about, a second at a time.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new(0);
    let memory = MemoryStore::new(Arc::new(clock.clone()));
    let store = Arc::new(FaultStore::new(Arc::new(memory)));
    let losing = Arc::clone(&store);
    let faults =
        TestKind::new().on_unknown_outcome(move |_| losing.fail_commit(1, CommitFault::AnswerLost));
    let kinds = Registry::new().with(TEST_KIND, faults.inline().retry(policy()))?;
    let engine = Engine::new(store.clone(), test_runtime(&clock), kinds);
    let tenant = Partition::new("tenant-7")?;

    let scripts = [
        ("recovers", Script::new().then(Fault::Error, 2)),
        ("never", Script::new().then(Fault::TooManyOps, 9)),
        ("damaged", Script::new().then(Fault::Undecodable, 1)),
        ("raced", Script::new().then(Fault::LostGuard, 2)),
        ("in doubt", Script::new().then(Fault::UnknownOutcome, 1)),
    ];
    for (name, script) in &scripts {
        let timer = script.timer(*name).named();
        engine
            .timers()
            .schedule(&tenant, timer, Policy::Replace)
            .await?;
    }
    for second in 0..60 {
        let tick = run_due(&engine, &tenant, TickBudget::default()).await;
        let total = tick.report.total;
        if total.progressed() > 0 {
            writeln!(
                out,
                "after {second:2} s: {} fired, {} failed, {} dead",
                total.fired, total.failed, total.dead
            )?;
        }
        clock.advance_ms(1_000);
    }
    for (name, _) in &scripts {
        let count = successes(&*store, &tenant, *name).await?;
        writeln!(out, "{name}: {count} effect(s)")?;
    }
    let dead = engine
        .timers()
        .dead(&tenant, Some(TEST_KIND), None, 10)
        .await?;
    for timer in dead.dead {
        writeln!(
            out,
            "dead: {} ({:?})",
            timer.reference.escape_ascii(),
            timer.reason
        )?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}

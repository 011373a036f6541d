//! An API with a quota: three shards serve it, none asks another before it answers, and together they stay
//! within the limit.
//!
//! Run it with `cargo run -p dueline-tokio --example api_quota`.

use std::error::Error;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dueline::kinds::quota_rollup::{Admission, Basis, Limits, Quota, QuotaRollup, Quotas};
use dueline::store::{Batch, NamespaceStore, Partition};
use dueline::timers::{Engine, Registry, Timers};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Answers requests: a request that is admitted is charged in the batch that stores its answer. Says how many
/// were.
async fn serve(
    store: &dyn NamespaceStore,
    quotas: &Quotas,
    shard: &Partition,
    requests: Range<u64>,
) -> Result<u64, Box<dyn Error>> {
    // Requests and bytes: what all may use, and what one shard may while it does not know the total.
    let limits = Limits::new([100, 1_000_000], [20, 200_000]);
    let mut served = 0;
    for number in requests {
        let request = format!("request/{number}");
        loop {
            let plan = quotas
                .plan_charge_within(store, shard, [1, 512], &limits)
                .await?;
            match plan.outcome {
                Admission::Refused {
                    basis: Basis::Stale { .. },
                    ..
                } => {
                    quotas
                        .timers()
                        .runtime()
                        .sleep(Duration::from_millis(20))
                        .await;
                }
                Admission::Refused { .. } => break,
                Admission::Admitted { .. } => {
                    let answer = Batch::new()
                        .put(request.clone(), "answer")
                        .append(plan.batch);
                    if store.apply(shard, answer).await?.is_committed() {
                        served += 1;
                        break;
                    }
                }
            }
        }
    }
    Ok(served)
}

/// Waits until a shard knows that this many requests were charged.
async fn knows(quotas: &Quotas, shard: &Partition, requests: u64) -> Result<(), Box<dyn Error>> {
    while quotas.usage(shard).await?.total.as_array()[0] != requests {
        quotas
            .timers()
            .runtime()
            .sleep(Duration::from_millis(20))
            .await;
    }
    Ok(())
}

/// The whole story, told to `out`.
pub(crate) async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = system_runtime()?;
    let options = Options::new(Arc::clone(runtime.clock()));
    let sqlite = SqliteStore::open(folder.path().join("quota.db"), options)?;
    let store = DriverStore::new(Arc::new(sqlite));

    // The roll-up reaches all partitions of the file.
    let timers = Timers::new(store.to_store(), runtime.clone());
    let (kind, registration) = QuotaRollup::new(timers).entry();
    let engine = Engine::new(
        store.to_store(),
        runtime,
        Registry::new().with(kind, registration)?,
    );
    let driver = Driver::builder(engine, store).start()?;
    let store = Arc::clone(driver.timers().store());

    // A month a window, a roll-up every second.
    let tenant = Partition::new("tenant-7")?;
    let quota = Quota::new("api", tenant, 30 * DAY_MS)?.period_ms(1_000);
    let quotas = Quotas::new(driver.timers().clone(), quota);
    let (eu, us, ap) = (
        Partition::new("tenant-7/eu")?,
        Partition::new("tenant-7/us")?,
        Partition::new("tenant-7/ap")?,
    );

    // Nobody knows of the others yet: each has its own limit.
    for (name, shard, requests) in [("eu", &eu, 25), ("us", &us, 15), ("ap", &ap, 10)] {
        let served = serve(&*store, &quotas, shard, 0..requests).await?;
        writeln!(out, "{name} serves {served} of {requests}")?;
    }

    // The shards are rolled up, and see the total.
    for (name, shard) in [("eu", &eu), ("us", &us), ("ap", &ap)] {
        knows(&quotas, shard, 45).await?;
        writeln!(out, "{name} knows of 45")?;
    }
    let served = serve(&*store, &quotas, &eu, 25..85).await?;
    writeln!(out, "eu serves {served} of 60")?;

    // Now the quota is used up, and a period later the others know.
    knows(&quotas, &us, 100).await?;
    let served = serve(&*store, &quotas, &us, 15..16).await?;
    writeln!(out, "us serves {served} of 1")?;
    let window = quotas.usage(&us).await?.window;
    let total = quotas.total(window).await?.unwrap_or_default();
    let [requests, bytes, ..] = total.as_array();
    writeln!(out, "{requests} requests, {bytes} bytes")?;

    driver.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}

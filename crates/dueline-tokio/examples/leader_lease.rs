//! A leader and its successor: whoever holds the lease writes, and a leader that was away too long is
//! refused.
//!
//! Run it with `cargo run -p dueline-tokio --example leader_lease`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::kinds::lease_sweep::{
    Drain, Grant, Lease, LeaseName, LeaseOwner, LeaseSource, LeaseSweep, Leases, Renewal,
};
use dueline::store::{Batch, NamespaceStore, Partition};
use dueline::timers::{Engine, HandlerError, Registry, TimerError};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// What a leader has promised and not done yet: while there is something, no other may lead.
#[derive(Default)]
struct Queue {
    is_done: AtomicBool,
    was_asked: Notify,
}

/// The source of the lease: asked once the lease has expired.
struct QueueIsEmpty(Arc<Queue>);

impl LeaseSource for QueueIsEmpty {
    fn drain<'a>(
        &'a self,
        _: &'a Partition,
        _: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>> {
        Box::pin(async move {
            self.0.was_asked.notify_one();
            Ok(if self.0.is_done.load(Ordering::Acquire) {
                Drain::Drained
            } else {
                Drain::Working { watermark: 0 }
            })
        })
    }
}

/// Asks for the lease until it is granted.
async fn lead(leases: Leases, shard: Partition, owner: &str) -> Result<Lease, TimerError> {
    let (leader, owner) = (
        LeaseName::new("leader")?,
        LeaseOwner::new(owner.to_owned())?,
    );
    loop {
        match leases.grant(&shard, &leader, &owner, 60_000).await? {
            Grant::Granted(lease) => return Ok(lease),
            Grant::Held(_) => {
                let runtime = leases.timers().runtime();
                runtime.sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Writes what only a leader may write; says whether it was written.
async fn write(
    store: &dyn NamespaceStore,
    shard: &Partition,
    lease: &Lease,
    text: &'static str,
) -> Result<bool, TimerError> {
    let batch = lease.fence().guard(Batch::new()).put("state", text);
    Ok(store.apply(shard, batch).await?.is_committed())
}

/// Shows it.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = system_runtime()?;
    let options = Options::new(Arc::clone(runtime.clock()));
    let sqlite = SqliteStore::open(folder.path().join("leases.db"), options)?;
    let store = DriverStore::new(Arc::new(sqlite));

    // The sweep asks the queue when a lease has expired, and again every 50 ms while work is left.
    let queue = Arc::new(Queue::default());
    let sweep = LeaseSweep::new(QueueIsEmpty(Arc::clone(&queue))).recheck_ms(50);
    let (kind, registration) = sweep.entry();
    let kinds = Registry::new().with(kind, registration)?;
    let engine = Engine::new(store.to_store(), runtime, kinds);
    let driver = Driver::builder(engine, store).start()?;
    let leases = Leases::new(driver.timers().clone());
    let store = driver.namespace_store();
    let (shard, leader) = (Partition::new("shard-7")?, LeaseName::new("leader")?);

    // Ann leads, for 100 ms unless she renews.
    let owner = LeaseOwner::new("ann")?;
    let Grant::Granted(anns) = leases.grant(&shard, &leader, &owner, 100).await? else {
        return Err("nobody has led yet".into());
    };
    writeln!(out, "ann leads in epoch {}", anns.epoch)?;
    let is_written = write(&*store, &shard, &anns, "by ann").await?;
    writeln!(out, "ann writes: {is_written}")?;

    // Bob waits for his turn. Ann is away and does not renew; but her queue is not done.
    let mut waiting = JoinSet::new();
    waiting.spawn(lead(leases.clone(), shard.clone(), "bob"));
    queue.was_asked.notified().await;
    writeln!(
        out,
        "ann's lease has expired; her queue is not done, so bob waits"
    )?;
    assert!(waiting.try_join_next().is_none());

    // The last of it is done: the next sweep sets the lease free.
    queue.is_done.store(true, Ordering::Release);
    let bobs = waiting.join_next().await.ok_or("bob waits")???;
    writeln!(out, "bob leads in epoch {}", bobs.epoch)?;
    let is_written = write(&*store, &shard, &bobs, "by bob").await?;
    writeln!(out, "bob writes: {is_written}")?;

    // Ann is back, and knows of nothing: the fence does.
    let is_written = write(&*store, &shard, &anns, "by ann, late").await?;
    writeln!(out, "ann writes: {is_written}")?;
    if let Renewal::Lost(Some(now)) = leases.renew(&shard, &leader, anns.epoch, 100).await? {
        let owner = now.owner.as_bytes().escape_ascii();
        writeln!(
            out,
            "ann cannot renew: {owner} leads in epoch {}",
            now.epoch
        )?;
    }
    leases.release(&shard, &leader, bobs.epoch).await?;
    writeln!(out, "bob steps down")?;

    driver.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}

//! Seats that are held while somebody pays: paid in time, or free again.
//!
//! Run it with `cargo run -p dueline-tokio --example seat_payment`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use dueline::BoxFuture;
use dueline::kinds::reservation_reconcile::{
    OnAbandon, Reservation, ReservationId, Reservations, Settlement, Terms,
};
use dueline::store::{Batch, Key, NamespaceStore, Partition, ReadStore, StoreError, Value};
use dueline::timers::{Engine, HandlerError, Registry, TimerCtx, TimerError, Timers};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};

const FREE: Key = Key::from_static(b"free-seats");

/// How many seats are free, with the value that a change has to guard.
async fn free(reads: &dyn ReadStore, hall: &Partition) -> Result<(u64, Option<Value>), StoreError> {
    let value = reads.get(hall, &FREE).await?;
    let text = value.as_deref().map(String::from_utf8_lossy);
    let seats = text.and_then(|text| text.parse().ok()).unwrap_or(0);
    Ok((seats, value))
}

/// Gives back the seat of a hold that nobody has paid for: in one batch with the end of the hold.
struct GiveBack;

impl OnAbandon for GiveBack {
    fn effects<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        _: &'a Reservation,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        Box::pin(async move {
            let (seats, read) = free(ctx.reads(), ctx.partition()).await?;
            let batch = Batch::new().require_unchanged(FREE, read);
            Ok(batch.put(FREE, (seats + 1).to_string()))
        })
    }
}

struct Hall {
    store: Arc<dyn NamespaceStore>,
    holds: Reservations,
    hall: Partition,
}

impl Hall {
    /// Holds a seat and counts it, in one batch. `None` if somebody has it, or all are gone.
    async fn hold(
        &self,
        seat: &str,
        pay_within_ms: u64,
    ) -> Result<Option<Reservation>, TimerError> {
        let id = ReservationId::new(seat.to_owned())?;
        // Without a retention the hold vanishes with its end, and the seat can be held anew.
        let terms = Terms::commit_within_ms(pay_within_ms)
            .skew_ms(10)
            .kept_for_ms(0);
        let (seats, read) = free(&*self.store, &self.hall).await?;
        let Some(left) = seats.checked_sub(1) else {
            return Ok(None);
        };
        let planned = self.holds.plan_reserve(&id, &terms)?;
        let batch = Batch::new()
            .require_absent(format!("sold/{seat}"))
            .require_unchanged(FREE, read)
            .put(FREE, left.to_string())
            .append(planned.batch);
        let outcome = self.store.apply(&self.hall, batch).await?;
        Ok(outcome.is_committed().then_some(planned.outcome))
    }

    /// Sells a seat that is held: the sale and the end of the hold are one batch.
    async fn pay(&self, hold: &Reservation, order: &'static str) -> Result<bool, TimerError> {
        let (id, serial) = (&hold.id, hold.serial);
        let planned = self.holds.plan_commit(&*self.store, &self.hall, id, serial);
        let planned = planned.await?;
        if !matches!(planned.outcome, Settlement::Settled(_)) {
            return Ok(false);
        }
        let sold = [b"sold/", id.as_bytes().as_ref()].concat();
        let batch = planned.batch.append(Batch::new().put(sold, order));
        Ok(self.store.apply(&self.hall, batch).await?.is_committed())
    }

    async fn is_held(&self, hold: &Reservation) -> Result<bool, TimerError> {
        let now = self.holds.read(&self.hall, &hold.id).await?;
        Ok(now.is_some_and(|now| now.serial == hold.serial))
    }
}

/// Shows it.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = system_runtime()?;
    let options = Options::new(Arc::clone(runtime.clock()));
    let sqlite = SqliteStore::open(folder.path().join("seats.db"), options)?;
    let store = DriverStore::new(Arc::new(sqlite));
    let timers = Timers::new(store.to_store(), runtime.clone());
    let holds = Reservations::new(timers).on_abandon(GiveBack);
    let (kind, registration) = holds.entry();
    let kinds = Registry::new().with(kind, registration)?;
    let engine = Engine::new(store.to_store(), runtime.clone(), kinds);
    let driver = Driver::builder(engine, store).start()?;
    let hall = Hall {
        store: driver.namespace_store(),
        holds,
        hall: Partition::new("hall-1")?,
    };
    let two = Batch::new().put(FREE, "2");
    assert!(hall.store.apply(&hall.hall, two).await?.is_committed());

    let ann = hall.hold("12A", 60_000).await?.ok_or("12A is free")?;
    writeln!(out, "ann holds 12A")?;
    if hall.hold("12A", 60_000).await?.is_none() {
        writeln!(out, "bob cannot hold 12A")?;
    }
    let bob = hall.hold("12B", 100).await?.ok_or("12B is free")?;
    writeln!(out, "bob holds 12B")?;
    let (seats, _) = free(&*hall.store, &hall.hall).await?;
    writeln!(out, "{seats} seats are free")?;

    let is_paid = hall.pay(&ann, "order-1").await?;
    writeln!(out, "ann pays: {is_paid}")?;
    while hall.is_held(&bob).await? {
        runtime.sleep(Duration::from_millis(20)).await;
    }
    let (seats, _) = free(&*hall.store, &hall.hall).await?;
    writeln!(out, "bob did not pay in time; {seats} seat is free")?;
    let is_paid = hall.pay(&bob, "order-2").await?;
    writeln!(out, "bob pays: {is_paid}")?;

    let cy = hall.hold("12B", 60_000).await?.ok_or("12B is free again")?;
    writeln!(out, "cy holds 12B")?;
    let is_paid = hall.pay(&bob, "order-2").await?;
    writeln!(out, "bob pays: {is_paid}")?;
    let is_paid = hall.pay(&cy, "order-3").await?;
    writeln!(out, "cy pays: {is_paid}")?;
    if hall.hold("12A", 60_000).await?.is_none() {
        writeln!(out, "no seat is left")?;
    }

    driver.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}

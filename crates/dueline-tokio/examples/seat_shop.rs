//! A shop that holds seats: at most two for a customer, each sold in time or free again, its checkout aborted.
//!
//! Run it with `cargo run -p dueline-tokio --example seat_shop`.

use std::error::Error;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::kinds::ticket_expiry::{
    Counted, Hold, Opened, SessionAbort, TICKET_EXPIRY, Ticket, TicketId, Tickets,
};
use dueline::store::{Batch, NamespaceStore, Partition};
use dueline::timers::{Engine, HandlerError, Registry, TimerError, Timers};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, system_runtime};

/// The payment provider. Here it only writes down which checkouts it was asked to abort.
#[derive(Clone, Default)]
struct Checkouts(Arc<Mutex<Vec<String>>>);

impl SessionAbort for Checkouts {
    fn abort<'a>(
        &'a self,
        _: &'a Partition,
        ticket: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            let checkout = ticket.session().ok_or("a ticket without a checkout");
            let checkout = checkout.map_err(HandlerError::new)?;
            let mut aborted = self.0.lock().map_err(|_| HandlerError::new("poisoned"))?;
            aborted.push(String::from_utf8_lossy(checkout).into_owned());
            Ok(())
        })
    }
}

struct Shop {
    store: Arc<dyn NamespaceStore>,
    tickets: Tickets,
    show: Partition,
}

impl Shop {
    /// A request to hold a seat. Sent again it has the same answer.
    fn request(seat: &str, customer: &str, hold_ms: u64) -> Hold {
        Hold::new(seat.to_owned(), hold_ms)
            .resource_max(1)
            .actor(customer.to_owned())
            .actor_max(2)
            .idempotency_key(format!("{customer} wants {seat}"))
            .session(format!("checkout of {seat}"))
    }

    /// Asks for a seat and says what came of it.
    async fn hold(&self, seat: &str, customer: &str, ms: u64) -> Result<String, TimerError> {
        let hold = Self::request(seat, customer, ms);
        Ok(match self.tickets.open(&self.show, &hold).await? {
            Opened::New(_) => format!("{customer} holds {seat}"),
            Opened::Existing(_) => format!("{customer} holds {seat} already"),
            Opened::Refused(why) => format!("{customer} cannot hold {seat}: {why}"),
        })
    }

    async fn ticket(&self, seat: &str, customer: &str) -> Result<Option<TicketId>, TimerError> {
        let key = format!("{customer} wants {seat}");
        let ticket = self.tickets.find(&self.show, key).await?;
        Ok(ticket.map(|ticket| ticket.id()))
    }

    /// Sells a seat that is held: the sale and the end of the ticket are one batch.
    async fn sell(&self, seat: &str, customer: &str) -> Result<bool, TimerError> {
        let Some(id) = self.ticket(seat, customer).await? else {
            return Ok(false);
        };
        let planned = self.tickets.plan_consume(&self.show, id).await?;
        if !planned.outcome.is_done() {
            return Ok(false);
        }
        let sale = Batch::new()
            .require_absent(format!("sold/{seat}"))
            .put(format!("sold/{seat}"), customer.to_owned());
        let outcome = self.store.apply(&self.show, sale.append(planned.batch));
        Ok(outcome.await?.is_committed())
    }
}

/// A morning at the shop, told to `out`.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = system_runtime()?;
    let options = Options::new(Arc::clone(runtime.clock()));
    let sqlite = SqliteStore::open(folder.path().join("shop.db"), options)?;
    let store = DriverStore::new(Arc::new(sqlite));
    let checkouts = Checkouts::default();
    let tickets = Tickets::new(Timers::new(store.to_store(), runtime.clone()))
        .with_sessions(checkouts.clone());
    let kinds = Registry::new().with(TICKET_EXPIRY, tickets.registration())?;
    let engine = Engine::new(store.to_store(), runtime.clone(), kinds);
    let driver = Driver::builder(engine, store).start()?;
    let shop = Shop {
        store: driver.namespace_store(),
        tickets,
        show: Partition::new("show-7")?,
    };

    writeln!(out, "{}", shop.hold("12A", "ann", 60_000).await?)?;
    writeln!(out, "{}", shop.hold("12A", "ann", 60_000).await?)?;
    writeln!(out, "{}", shop.hold("12A", "bob", 60_000).await?)?;
    writeln!(out, "{}", shop.hold("12B", "ann", 60_000).await?)?;
    writeln!(out, "{}", shop.hold("12C", "ann", 60_000).await?)?;
    writeln!(out, "{}", shop.hold("12C", "bob", 100).await?)?;

    let is_sold = shop.sell("12A", "ann").await?;
    writeln!(out, "ann buys 12A: {is_sold}")?;
    if let Some(id) = shop.ticket("12B", "ann").await? {
        let given_back = shop.tickets.release(&shop.show, id).await?.is_done();
        writeln!(out, "ann gives 12B back: {given_back}")?;
    }

    while shop.ticket("12C", "bob").await?.is_some() {
        runtime.sleep(Duration::from_millis(20)).await;
    }
    let aborted = checkouts.0.lock().map_err(|_| "poisoned")?.join(", ");
    writeln!(out, "bob's time is over; aborted: {aborted}")?;
    let is_sold = shop.sell("12C", "bob").await?;
    writeln!(out, "bob buys 12C: {is_sold}")?;
    writeln!(out, "{}", shop.hold("12C", "ann", 60_000).await?)?;
    for customer in ["ann", "bob"] {
        let counted = Counted::Actor(customer.into());
        let open = shop.tickets.open_count(&shop.show, &counted).await?;
        writeln!(out, "seats held by {customer}: {open}")?;
    }

    driver.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}

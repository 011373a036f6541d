//! A shop that tells its accounting of every paid order by webhook: the payment and its message are one
//! commit, and the message arrives at least once and in order.
//!
//! Run it with `cargo run -p dueline-tokio --example outbox`. It has both ends, on the loopback.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use dueline::BoxFuture;
use dueline::kinds::outcome_delivery::{
    Delivery, DeliveryOptions, OUTCOME_DELIVERY, Outbox, OutboxName, Outcome, OutcomeDelivery,
    Sink, SinkError,
};
use dueline::memory::MemoryStore;
use dueline::store::{Batch, BatchOutcome, Partition};
use dueline::timers::{Engine, Registry, RetryPolicy};
use dueline_tokio::{Driver, DriverStore, Handle, system_runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Sends an outcome as an HTTP POST. Whoever receives it tells a second delivery by its id.
struct Webhooks {
    to: SocketAddr,
}

impl Webhooks {
    async fn post(&self, delivery: &Delivery) -> std::io::Result<u16> {
        let mut stream = TcpStream::connect(self.to).await?;
        let head = format!(
            "POST /paid HTTP/1.1\r\nhost: {}\r\nwebhook-id: {}\r\nwebhook-attempt: {}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.to,
            delivery.id.escape_ascii(),
            delivery.attempt,
            delivery.body.len(),
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&delivery.body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        status.ok_or_else(|| std::io::Error::other("that is no answer"))
    }
}

impl Sink for Webhooks {
    fn deliver<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            match self.post(delivery).await {
                Ok(200..=299) => Ok(()),
                Ok(410) => Err(SinkError::refused("410, it will never be taken")),
                Ok(429 | 503) => Err(SinkError::unavailable("it takes nothing just now")),
                Ok(status) => Err(SinkError::failed(format!("{status}"))),
                Err(error) => Err(SinkError::unavailable(error.to_string())),
            }
        })
    }
}

/// The accounting, at the other end: it is too busy for one request and does not know one order.
struct Accounting {
    was_busy: AtomicBool,
    knows_order_3: AtomicBool,
    told: mpsc::Sender<String>,
}

async fn receive(
    State(accounting): State<Arc<Accounting>>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let id = headers.get("webhook-id").and_then(|id| id.to_str().ok());
    let status = match id {
        Some("order-2") if !accounting.was_busy.swap(true, Relaxed) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Some("order-3") if !accounting.knows_order_3.load(Relaxed) => StatusCode::GONE,
        _ => StatusCode::OK,
    };
    let line = format!("{} to {}: {body}", status.as_u16(), id.unwrap_or("?"));
    drop(accounting.told.send(line).await);
    status
}

/// An order is paid: its state and what accounting is to be told are one commit.
async fn pay(driver: &Handle, outbox: &Outbox, order: &str) -> Result<bool, Box<dyn Error>> {
    let message = Outcome {
        id: order.to_owned().into(),
        body: format!(r#"{{"order":"{order}","cents":1250}}"#).into(),
    };
    let shop = Partition::new("shop-1")?;
    loop {
        let told = outbox.plan(std::slice::from_ref(&message)).await?;
        let paid = Batch::new()
            .require_absent(order.to_owned())
            .put(order.to_owned(), "paid")
            .append(told.batch.clone());
        match driver.store().apply(&shop, paid).await? {
            BatchOutcome::Committed => return Ok(true),
            // The outbox has moved on between the plan and the commit: plan again.
            BatchOutcome::PreconditionFailed { index, .. } if told.owns_guard(1, index) => {}
            _ => return Ok(false),
        }
    }
}

/// Starts the driver with the webhooks of the outbox `paid`.
fn start(to: SocketAddr) -> Result<(Handle, Outbox), Box<dyn Error>> {
    let runtime = system_runtime()?;
    let memory = MemoryStore::new(Arc::clone(runtime.clock()));
    let store = DriverStore::new(Arc::new(memory));
    let name = OutboxName::new("paid")?;
    let options = DeliveryOptions::new().retry(RetryPolicy {
        initial_ms: 100,
        ..DeliveryOptions::new().retry
    });
    let delivery =
        OutcomeDelivery::new(runtime.clone()).sink_with(name.clone(), Webhooks { to }, options);
    let handlers = Registry::new().with(OUTCOME_DELIVERY, delivery.registration())?;
    let engine = Engine::new(store.to_store(), runtime, handlers);
    let driver = Driver::builder(engine, store).start()?;
    let outbox = Outbox::new(driver.timers().clone(), Partition::new("shop-1")?, name);
    Ok((driver, outbox))
}

/// Waits until nothing is left to be told.
async fn until_empty(driver: &Handle, outbox: &Outbox) -> Result<(), Box<dyn Error>> {
    while outbox.backlog().await?.rows > 0 {
        let pause = Duration::from_millis(5);
        driver.timers().runtime().sleep(pause).await;
    }
    Ok(())
}

/// Pays four orders and writes what the accounting was told.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (told, mut requests) = mpsc::channel(16);
    let accounting = Arc::new(Accounting {
        was_busy: AtomicBool::new(false),
        knows_order_3: AtomicBool::new(false),
        told,
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (driver, outbox) = start(listener.local_addr()?)?;
    let app = Router::new()
        .route("/paid", post(receive))
        .with_state(Arc::clone(&accounting));
    let mut servers = JoinSet::new();
    servers.spawn(async move { axum::serve(listener, app).await });

    for order in ["order-1", "order-2", "order-3", "order-4"] {
        pay(&driver, &outbox, order).await?;
    }
    let again = pay(&driver, &outbox, "order-1").await?;
    writeln!(out, "order-1 is paid a second time: {again}")?;
    for _ in 0..5 {
        let request = requests.recv().await.ok_or("the accounting is gone")?;
        writeln!(out, "accounting answers {request}")?;
    }
    until_empty(&driver, &outbox).await?;
    for dead in outbox.dead(None, 10).await?.outcomes {
        writeln!(out, "set aside: sequence {}, {}", dead.sequence, dead.error)?;
        accounting.knows_order_3.store(true, Relaxed);
        outbox.requeue(dead.sequence).await?;
    }
    let request = requests.recv().await.ok_or("the accounting is gone")?;
    writeln!(out, "accounting answers {request}")?;
    until_empty(&driver, &outbox).await?;
    let left = outbox.dead(None, 10).await?.outcomes.len();
    writeln!(out, "set aside: {left}")?;

    driver.shutdown(Duration::from_secs(10)).await;
    servers.shutdown().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout()).await
}

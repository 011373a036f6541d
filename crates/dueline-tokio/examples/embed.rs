//! An HTTP service that holds seats and gives back those that are not paid for in ten minutes.
//!
//! `PUT /seats/12A` holds a seat: the hold and its timer are one write. Run it with
//! `cargo run -p dueline-tokio --example embed`, then `curl -X PUT localhost:8080/seats/12A`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::put};
use dueline::BoxFuture;
use dueline::store::{Batch, Partition};
use dueline::timers::{
    DueTimer, Engine, Fired, HandlerError, Registration, Registry, Timer, TimerCtx, TimerHandler,
    TimerKind,
};
use dueline_sqlite::{Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, Handle, system_runtime};

const EXPIRE_HOLD: TimerKind = TimerKind(16);
const HOLD_MS: u64 = 10 * 60 * 1_000;

/// Gives a seat back: the row goes in the same commit as the timer.
struct ExpireHold;

impl TimerHandler for ExpireHold {
    fn fire<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        let free = Batch::new().delete(timer.reference().clone());
        Box::pin(async move { Ok(Fired::Done(free)) })
    }
}

/// Holds a seat unless somebody else does, and schedules the end of the hold in the same batch.
async fn hold(
    State(driver): State<Handle>,
    Path(seat): Path<String>,
) -> Result<StatusCode, (StatusCode, String)> {
    let unavailable =
        |error: &dyn std::fmt::Display| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    let hall = Partition::new("hall-1").map_err(|error| unavailable(&error))?;
    let due_at_ms = driver.timers().runtime().now_ms() + HOLD_MS;
    let expiry = Timer::new(EXPIRE_HOLD, seat.clone())
        .due_at(due_at_ms)
        .named();
    let plan = driver
        .timers()
        .plan_new(&expiry)
        .map_err(|error| unavailable(&error))?;
    let batch = Batch::new()
        .require_absent(seat.clone())
        .put(seat, "held")
        .append(plan.batch);
    match driver.store().apply(&hall, batch).await {
        Ok(outcome) if outcome.is_committed() => Ok(StatusCode::CREATED),
        Ok(_) => Err((StatusCode::CONFLICT, "somebody holds this seat".to_owned())),
        Err(error) => Err(unavailable(&error)),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The engine: a host, a file, handlers, a driver.
    let runtime = system_runtime()?;
    let sqlite = SqliteStore::open("seats.db", Options::new(Arc::clone(runtime.clock())))?;
    let store = DriverStore::new(Arc::new(sqlite));
    let handlers = Registry::new().with(EXPIRE_HOLD, Registration::inline(ExpireHold))?;
    let engine = Engine::new(store.to_store(), runtime, handlers);
    let driver = Driver::builder(engine, store).start()?;

    // The service: it schedules through the handle, and the handle ends with it.
    let app = Router::new()
        .route("/seats/{seat}", put(hold))
        .with_state(driver.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let stopped = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, app)
        .with_graceful_shutdown(stopped)
        .await?;
    driver.shutdown(Duration::from_secs(10)).await;
    Ok(())
}

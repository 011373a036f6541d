use std::any::Any;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::trace::TraceLayer;

use super::local_only::local_only;
use super::problem::Problem;
use super::problem_of::internal;
use super::{dead_letters, health, overview, timers, timers_collection};
use crate::service::Service;

/// Every route of the server.
pub(crate) fn router(service: Service) -> Router {
    let get_only = || Problem::method("GET, HEAD");
    let post_only = || Problem::method("POST");
    Router::new()
        .route(
            "/v1/partitions/{partition}/timers",
            get(timers_collection::list)
                .post(timers_collection::create)
                .fallback(async || Problem::method("GET, HEAD, POST")),
        )
        .route(
            "/v1/partitions/{partition}/timers:batch",
            post(timers_collection::batch).fallback(async move || post_only()),
        )
        .route(
            "/v1/partitions/{partition}/timers/{timer}",
            get(timers::get)
                .put(timers::put)
                .patch(timers::patch)
                .delete(timers::delete)
                .post(timers::verb)
                .fallback(async || Problem::method(timers::METHODS)),
        )
        .route(
            "/v1/partitions/{partition}/dead-letters",
            get(dead_letters::list).fallback(async move || get_only()),
        )
        .route(
            "/v1/partitions/{partition}/dead-letters:requeue",
            post(dead_letters::requeue_all).fallback(async move || post_only()),
        )
        .route(
            "/v1/partitions/{partition}/dead-letters/{dead_letter}",
            post(dead_letters::verb).fallback(async move || post_only()),
        )
        .route(
            "/v1/partitions",
            get(overview::partitions).fallback(async move || get_only()),
        )
        .route(
            "/v1/stats",
            get(overview::stats).fallback(async move || get_only()),
        )
        .route(
            "/v1/limits",
            get(overview::api_limits).fallback(async move || get_only()),
        )
        .route(
            "/healthz",
            get(health::healthz).fallback(async move || get_only()),
        )
        .route(
            "/readyz",
            get(health::readyz).fallback(async move || get_only()),
        )
        .fallback(no_route)
        .layer(from_fn(local_only))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .with_state(service)
}

async fn no_route() -> Problem {
    Problem::no_route("no route has this path; the API begins at /v1/partitions")
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that the layer asks for"
)]
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(panic = text, "a request panicked");
    internal().into_response()
}

/// Method and path alone: a query or a header may hold what a log must not.
fn span(request: &Request) -> tracing::Span {
    tracing::info_span!("request", method = %request.method(), path = request.uri().path())
}

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::BODY_BYTES_MAX;
use super::body::read_json_or_nothing;
use super::names;
use super::problem::Problem;
use super::query::{Query, no_parameters};
use super::timers::refuse_members;
use crate::service::Service;

pub(super) async fn list(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let partition = names::partition(request.uri())?;
    let mut query = Query::of(request.uri());
    let page = query.take_page();
    query.finish()?;
    let list = service.dead_letters(&partition, &page).await?;
    Ok(Json(list).into_response())
}

/// `POST .../dead-letters/{id}:requeue` and `:purge`.
pub(super) async fn verb(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let unknown = || {
        Problem::no_route(
            "a dead letter has two verbs: POST .../dead-letters/{id}:requeue and :purge",
        )
    };
    let (id, verb) = names::id_and_verb(&parts.uri)?.ok_or_else(unknown)?;
    let partition = names::partition(&parts.uri)?;
    no_parameters(&parts.uri)?;
    let body =
        read_json_or_nothing(service.runtime(), &parts.headers, body, BODY_BYTES_MAX).await?;
    refuse_members(body.members)?;
    match verb {
        "requeue" => Ok(Json(service.requeue(&partition, &id).await?).into_response()),
        "purge" => {
            service.purge(&partition, &id).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        _ => Err(unknown()),
    }
}

/// `POST .../dead-letters:requeue`, a page at a time.
pub(super) async fn requeue_all(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let partition = names::partition(&parts.uri)?;
    let mut query = Query::of(&parts.uri);
    let page = query.take_page();
    query.finish()?;
    let body =
        read_json_or_nothing(service.runtime(), &parts.headers, body, BODY_BYTES_MAX).await?;
    refuse_members(body.members)?;
    let done = service.requeue_all(&partition, &page).await?;
    Ok(Json(done).into_response())
}

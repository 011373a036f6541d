use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::ETAG;

use super::BODY_BYTES_MAX;
use super::body::{read_json, read_json_or_nothing};
use super::conditions::{condition, keyed};
use super::names;
use super::problem::Problem;
use super::query::{Query, no_parameters};
use super::reply;
use crate::service::{
    FieldErrors, Fields, Members, Service, ServiceError, TimerId, TimerSpec, require_due,
    timer_spec,
};

/// The methods of a timer.
pub(super) const METHODS: &str = "DELETE, GET, HEAD, PATCH, PUT";

/// Decodes a timer from a body.
pub(super) fn spec_of(service: &Service, members: Members) -> Result<TimerSpec, Problem> {
    let mut errors = FieldErrors::new();
    let mut fields = Fields::new("", members, &mut errors);
    let had_due = fields.has("due_at") || fields.has("delay");
    let spec = timer_spec(
        &mut fields,
        service.now_ms(),
        service.allow_private(),
        &mut errors,
    );
    require_due(&fields, had_due, &mut errors);
    fields.finish(&mut errors);
    match spec {
        Some(spec) if errors.is_empty() => Ok(spec),
        _ => Err(ServiceError::Fields(errors).into()),
    }
}

pub(super) async fn put(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let (partition, id) = names::timer(&parts.uri)?;
    no_parameters(&parts.uri)?;
    let condition = condition(&parts)?;
    let body = read_json(service.runtime(), &parts.headers, body, BODY_BYTES_MAX).await?;
    let keyed = keyed(&parts, &body.bytes)?;
    let spec = spec_of(&service, body.members)?;
    let answer = service
        .put(&partition, &id, spec, &condition, keyed.as_ref())
        .await?;
    Ok(reply::timer(answer))
}

pub(super) async fn get(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (partition, id) = names::timer(request.uri())?;
    no_parameters(request.uri())?;
    let timer = service.read(&partition, &id).await?;
    let tag = reply::entity_tag(&timer.generation);
    let mut response = Json(timer).into_response();
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

pub(super) async fn patch(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let (partition, id) = names::timer(&parts.uri)?;
    no_parameters(&parts.uri)?;
    let condition = condition(&parts)?;
    let body = read_json(service.runtime(), &parts.headers, body, BODY_BYTES_MAX).await?;
    let keyed = keyed(&parts, &body.bytes)?;
    let answer = service
        .patch(&partition, &id, &body.members, &condition, keyed.as_ref())
        .await?;
    Ok(reply::timer(answer))
}

pub(super) async fn delete(
    State(service): State<Service>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let (parts, _) = request.into_parts();
    let (partition, id) = names::timer(&parts.uri)?;
    let mut query = Query::of(&parts.uri);
    let force = query.take_switch("force");
    query.finish()?;
    let condition = condition(&parts)?;
    service.remove(&partition, &id, &condition, force).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST .../timers/{id}:fire-now`.
pub(super) async fn verb(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let Some((id, verb)) = names::id_and_verb(&parts.uri)? else {
        return Err(Problem::method(METHODS));
    };
    if verb != "fire-now" {
        return Err(Problem::no_route(
            "a timer has one verb: POST .../timers/{id}:fire-now",
        ));
    }
    let partition = names::partition(&parts.uri)?;
    let id = TimerId::new(&id)?;
    no_parameters(&parts.uri)?;
    let condition = condition(&parts)?;
    let body =
        read_json_or_nothing(service.runtime(), &parts.headers, body, BODY_BYTES_MAX).await?;
    let keyed = keyed(&parts, &body.bytes)?;
    refuse_members(body.members)?;
    let answer = service
        .fire_now(&partition, &id, &condition, keyed.as_ref())
        .await?;
    Ok(reply::timer(answer))
}

/// Refuses a body with anything in it.
pub(super) fn refuse_members(members: Members) -> Result<(), Problem> {
    let mut errors = FieldErrors::new();
    Fields::new("", members, &mut errors).finish(&mut errors);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Fields(errors).into())
    }
}

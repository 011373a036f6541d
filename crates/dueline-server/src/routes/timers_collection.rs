use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::body::read_json;
use super::conditions::keyed;
use super::names;
use super::problem::Problem;
use super::query::{Query, no_parameters};
use super::reply;
use super::timers::spec_of;
use super::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use crate::service::{Answer, Service, ServiceError};

#[derive(Serialize)]
struct BatchJson {
    results: Vec<ResultJson>,
}

#[derive(Serialize)]
struct ResultJson {
    status: u16,
    #[serde(flatten)]
    what: WhatJson,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum WhatJson {
    Timer(Box<crate::service::TimerJson>),
    Error(Box<Problem>),
}

impl From<Result<Answer, ServiceError>> for ResultJson {
    fn from(result: Result<Answer, ServiceError>) -> Self {
        match result {
            Ok(answer) => Self {
                status: reply::status_of(answer.outcome).as_u16(),
                what: WhatJson::Timer(Box::new(answer.timer)),
            },
            Err(error) => {
                let problem = Problem::from(error);
                Self {
                    status: problem.status().as_u16(),
                    what: WhatJson::Error(Box::new(problem)),
                }
            }
        }
    }
}

pub(super) async fn create(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let partition = names::partition(&parts.uri)?;
    no_parameters(&parts.uri)?;
    let body = read_json(service.runtime(), &parts.headers, body, BODY_BYTES_MAX).await?;
    let keyed = keyed(&parts, &body.bytes)?;
    let spec = spec_of(&service, body.members)?;
    let answer = service.create(&partition, spec, keyed.as_ref()).await?;
    Ok(reply::timer(answer))
}

pub(super) async fn batch(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let partition = names::partition(&parts.uri)?;
    no_parameters(&parts.uri)?;
    let body = read_json(
        service.runtime(),
        &parts.headers,
        body,
        BATCH_BODY_BYTES_MAX,
    )
    .await?;
    let keyed = keyed(&parts, &body.bytes)?;
    let described = service.describe_batch(body.members)?;
    let results = service
        .put_batch(&partition, described, keyed.as_ref())
        .await?;
    let results = results.into_iter().map(ResultJson::from).collect();
    Ok(Json(BatchJson { results }).into_response())
}

pub(super) async fn list(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let partition = names::partition(request.uri())?;
    let mut query = Query::of(request.uri());
    let filter = query.take_filter();
    let page = query.take_page();
    query.finish()?;
    let list = service.list(&partition, &filter, &page).await?;
    Ok(Json(list).into_response())
}

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use super::query::{Query, no_parameters};
use super::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX};
use crate::service::{PartitionName, Service, limits};

pub(super) async fn partitions(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let mut query = Query::of(request.uri());
    let page = query.take_page();
    query.finish()?;
    Ok(Json(service.partitions(&page).await?).into_response())
}

pub(super) async fn stats(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, Problem> {
    let mut query = Query::of(request.uri());
    let partition = query.take_parsed("partition", |text| {
        PartitionName::new(text).map_err(|error| error.to_string())
    });
    query.finish()?;
    Ok(Json(service.stats(partition.as_ref()).await?).into_response())
}

pub(super) async fn api_limits(request: Request) -> Result<Response, Problem> {
    no_parameters(request.uri())?;
    Ok(Json(limits(BODY_BYTES_MAX, BATCH_BODY_BYTES_MAX)).into_response())
}

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::problem::Problem;
use crate::service::Service;

#[derive(Serialize)]
pub(super) struct StatusJson {
    status: &'static str,
}

/// The process answers.
pub(super) async fn healthz() -> Json<StatusJson> {
    Json(StatusJson { status: "ok" })
}

/// Timers can be scheduled and are fired.
pub(super) async fn readyz(State(service): State<Service>) -> Result<Json<StatusJson>, Problem> {
    service.ready().await?;
    Ok(Json(StatusJson { status: "ready" }))
}

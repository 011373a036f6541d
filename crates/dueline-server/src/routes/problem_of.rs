//! What each error of the service is over HTTP. The only place that says so.

use dueline::store::{StoreError, StoreErrorKind};
use http::StatusCode;

use super::problem::Problem;
use crate::service::{NameError, NotReady, ServiceError};
use crate::time_text::rfc3339_ms;

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self::name(error.to_string())
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Fields(errors) => Self::impossible(errors.into_vec()),
            ServiceError::TimerNotFound => Self::new(
                StatusCode::NOT_FOUND,
                "timer_not_found",
                "There is no such timer",
                "nothing has this id now: it never was, has fired, or was cancelled",
            ),
            ServiceError::DeadLetterNotFound => Self::new(
                StatusCode::NOT_FOUND,
                "dead_letter_not_found",
                "There is no such dead letter",
                "nothing has this id now: it never was, was requeued, or was purged",
            ),
            ServiceError::AlreadyExists { generation } => precondition(format!(
                "If-None-Match: * asks for a new timer, and there is one of generation \
                 \"{generation}\""
            )),
            ServiceError::Changed { current } => precondition(match current {
                Some(generation) => format!(
                    "If-Match asks for another generation than the current one, \
                     \"{generation}\"; read the timer again"
                ),
                None => "If-Match asks for a timer, and there is none by this id".to_owned(),
            }),
            ServiceError::InDelivery { ends_at_ms } => Self::new(
                StatusCode::CONFLICT,
                "timer_in_delivery",
                "The timer is being delivered",
                format!(
                    "the delivery under way ends by {} at the latest; with force=true the timer \
                     goes at once, and the call may still arrive",
                    rfc3339_ms(ends_at_ms)
                ),
            )
            .retry_after_s(1),
            ServiceError::Contended => Self::new(
                StatusCode::CONFLICT,
                "contended",
                "Others keep changing the timer",
                "the timer changed each time this request tried; try again later",
            )
            .retry_after_s(1),
            ServiceError::PageToken => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_page_token",
                "The page token does not belong to this list",
                "a page_token is good for the list and the filter that it came with; begin again \
                 without one",
            ),
            ServiceError::KeyReused => key_reused(),
            ServiceError::KeyInFlight => key_in_flight(),
            ServiceError::Store(error) => store(&error),
            ServiceError::Internal(detail) => {
                tracing::error!(detail, "a request failed by a fault of the server");
                internal()
            }
        }
    }
}

impl From<NotReady> for Problem {
    fn from(why: NotReady) -> Self {
        match why {
            NotReady::Store(ServiceError::Store(error)) => unavailable(&error),
            NotReady::Store(error) => error.into(),
            NotReady::Driver => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "driver_stopped",
                "Due timers are not being fired",
                "the driver has stopped; the log says why",
            )
            .retry_after_s(1),
        }
    }
}

/// A fault of the server; the log has it.
pub(super) fn internal() -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "The server failed",
        "this is a fault of the server; its log says more",
    )
}

fn key_reused() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "idempotency_key_reused",
        "The idempotency key was used for another request",
        "this Idempotency-Key came with another request in the last 24 h; use a new one",
    )
}

fn key_in_flight() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "idempotency_key_in_flight",
        "The request is being carried out",
        "a request with this Idempotency-Key is under way; repeat it for its answer",
    )
    .retry_after_s(1)
}

fn precondition(detail: String) -> Problem {
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "precondition_failed",
        "The timer is not what the request was made for",
        detail,
    )
}

/// An error of the store: what it means, never what the backend says. That goes to the log.
fn store(error: &StoreError) -> Problem {
    tracing::error!(?error, "the store refused a request");
    match error.kind() {
        StoreErrorKind::Full => Problem::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "store_full",
            "The store is full",
            "nothing was written; reading still works, and deleting timers makes room",
        ),
        StoreErrorKind::Unknown => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "outcome_unknown",
            "It is not known whether the request was carried out",
            "it was carried out in full or not at all; read the timer, or repeat the request with \
             its Idempotency-Key",
        )
        .retry_after_s(1),
        StoreErrorKind::Corrupt => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store_corrupt",
            "What is stored does not decode",
            "run `dueline doctor` on the data directory",
        ),
        StoreErrorKind::Unavailable => unavailable(error),
        _ => internal(),
    }
}

fn unavailable(error: &StoreError) -> Problem {
    tracing::warn!(?error, "the store is unavailable");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "store_unavailable",
        "The store is unavailable",
        "nothing was written; try again later",
    )
    .retry_after_s(1)
}

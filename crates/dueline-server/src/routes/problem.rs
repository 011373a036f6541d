use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderName, StatusCode};
use serde::Serialize;

use crate::service::FieldError;

/// An error as RFC 9457 has it. `code` is for programs and never changes its meaning; `title` goes
/// with the code; `detail` is about this request.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Problem(Box<ProblemJson>);

#[derive(Clone, Debug, Serialize)]
struct ProblemJson {
    r#type: String,
    title: &'static str,
    #[serde(serialize_with = "status_number")]
    status: StatusCode,
    detail: String,
    code: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    #[serde(skip)]
    header: Option<(HeaderName, HeaderValue)>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape that serde asks for"
)]
fn status_number<S: serde::Serializer>(
    status: &StatusCode,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self(Box::new(ProblemJson {
            r#type: format!("urn:dueline:problem:{code}"),
            title,
            status,
            detail: detail.into(),
            code,
            errors: Vec::new(),
            header: None,
        }))
    }

    /// A header, path or query that does not parse.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        let title = "The request could not be read";
        Self::new(StatusCode::BAD_REQUEST, "bad_request", title, detail)
    }

    /// A request that is understood and impossible.
    pub(super) fn impossible(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] if one.pointer.is_empty() => one.detail.clone(),
            [one] => format!("{}: {}", one.pointer, one.detail),
            several => format!("{} things are wrong; see errors", several.len()),
        };
        let title = "The request cannot be carried out as it stands";
        let mut problem = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request",
            title,
            detail,
        );
        problem.0.errors = errors;
        problem
    }

    /// A name in the path that is not allowed.
    pub(super) fn name(detail: impl Into<String>) -> Self {
        let title = "The name in the path is not allowed";
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_name",
            title,
            detail,
        )
    }

    /// No such route.
    pub(super) fn no_route(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "There is nothing here",
            detail,
        )
    }

    /// The route is there and the method is not.
    pub(super) fn method(allowed: &'static str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "The method is not known here",
            format!("use one of {allowed}"),
        )
        .with_header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// The same problem with a wait that the client should keep before it tries again.
    pub(super) fn retry_after_s(self, seconds: u64) -> Self {
        self.with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let header = self.0.header.clone();
        let mut response = (self.0.status, Json(self)).into_response();
        let headers = response.headers_mut();
        let content_type = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, content_type);
        if let Some((name, value)) = header {
            headers.insert(name, value);
        }
        response
    }
}

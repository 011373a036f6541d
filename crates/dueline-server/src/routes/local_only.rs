//! What keeps a server without tokens to this machine: it listens on loopback, and a web page that
//! is open in a browser here must not reach it either, neither directly nor by making its own name
//! point at this machine.

use std::net::IpAddr;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{HOST, ORIGIN};
use url::Url;

use super::problem::Problem;

/// Lets a request pass that names this machine as its host and comes from no other site.
pub(super) async fn local_only(request: Request, next: Next) -> Response {
    match check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(request: &Request) -> Result<(), Problem> {
    let header = |name| {
        let value = request.headers().get(name)?;
        Some(value.to_str().unwrap_or("not ASCII"))
    };
    let host = request
        .uri()
        .authority()
        .map(http::uri::Authority::as_str)
        .or_else(|| header(HOST));
    if host.is_some_and(|host| !is_this_machine(&format!("http://{host}"))) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "unknown_host",
            "The host is not this machine",
            "without tokens the server answers to localhost and loopback addresses alone",
        ));
    }
    if header(ORIGIN).is_some_and(|origin| !is_this_machine(origin)) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "cross_origin",
            "The request comes from another site",
            "without tokens the server takes no requests from web pages of other sites",
        ));
    }
    Ok(())
}

fn is_this_machine(origin: &str) -> bool {
    let Ok(url) = Url::parse(origin) else {
        return false;
    };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        None => false,
    }
}

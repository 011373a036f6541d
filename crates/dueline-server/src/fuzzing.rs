//! What the fuzz targets call. Not a part of the API.

use std::io;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use dueline::Bytes;
use dueline::store::WakeStore;
use dueline::timers::{Registration, Registry, RegistryError, Timers};
use http::{Request, Response};
use tower::ServiceExt;

use crate::routes::router;
use crate::service::{
    DriverCounts, DriverHealth, EXPIRY_GROUP_MAX, IDEMPOTENCY_EXPIRY, IdempotencyExpiry, Service,
};
use crate::webhook::{WEBHOOK, WebhookHandler};

pub use crate::time_text::{parse_rfc3339_ms, parse_span_ms, rfc3339_ms, span_text};
pub use crate::webhook::{Delivery, Receiver};

/// Most bytes of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1_024 * 1_024;

#[derive(Debug)]
struct NoDriver;

impl DriverHealth for NoDriver {
    fn is_running(&self) -> bool {
        true
    }

    fn counts(&self) -> DriverCounts {
        DriverCounts::default()
    }
}

/// The handlers of a server, whose deliveries all go to this receiver.
///
/// # Errors
/// Two handlers of one kind, which there are not.
pub fn handlers(receiver: Receiver) -> Result<Registry, RegistryError> {
    let webhook = Registration::detached(WebhookHandler::new(receiver)).codec_version(1);
    let expiry = Registration::inline(IdempotencyExpiry).group_max(EXPIRY_GROUP_MAX);
    Registry::new()
        .with(WEBHOOK, webhook)
        .and_then(|registry| registry.with(IDEMPOTENCY_EXPIRY, expiry))
}

/// Every route over a store of the caller's, without a socket and without a driver: nothing fires by
/// itself.
#[derive(Debug)]
pub struct Api {
    router: axum::Router,
    /// Requests that do several things at once spawn tasks.
    tokio: tokio::runtime::Runtime,
}

impl Api {
    /// The routes over these verbs and this store, which see the same data.
    ///
    /// # Errors
    /// The system has no room for a runtime.
    pub fn new(timers: Timers, store: Arc<dyn WakeStore>) -> io::Result<Self> {
        let service = Service::new(timers, store, Arc::new(NoDriver), false);
        Ok(Self {
            router: router(service),
            tokio: tokio::runtime::Builder::new_current_thread().build()?,
        })
    }

    /// Answers a request; `None` if its answer is no end of bytes.
    pub fn answer(&self, request: Request<Vec<u8>>) -> Option<Response<Bytes>> {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, Body::from(body));
        let router = self.router.clone();
        self.tokio.block_on(async move {
            let Ok(answer) = router.oneshot(request).await;
            let (parts, body) = answer.into_parts();
            let body = to_bytes(body, ANSWER_BYTES_MAX).await.ok()?;
            Some(Response::from_parts(parts, body))
        })
    }
}

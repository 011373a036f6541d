use std::sync::Arc;

use dueline::Bytes;
use dueline::limits::PAYLOAD_BYTES_MAX;
use dueline::runtime::Runtime;
use dueline::store::WakeStore;
use dueline::timers::{ListQuery, Timer, TimerError, TimerPage, TimerView, Timers};

use super::error::ServiceError;
use super::health::DriverHealth;
use super::idempotency::InFlight;
use super::names::{PartitionName, TimerId};
use super::timer_spec::too_large;
use crate::mutants::{Mutant, planted};
use crate::webhook::{WEBHOOK, WebhookRecord};

/// How often a request looks again when the timer changes under it. Of the requests that change one
/// timer at a time one wins, so this is also how many of them can be sure of their turn.
pub(super) const LOOKS_MAX: u32 = 256;

/// What the routes work with. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(super) timers: Timers,
    pub(super) store: Arc<dyn WakeStore>,
    pub(super) driver: Arc<dyn DriverHealth>,
    pub(super) in_flight: InFlight,
    pub(super) allow_private: bool,
    pub(super) started_at_ms: u64,
}

impl Service {
    /// A service over the verbs and the store, which see the same data.
    pub(crate) fn new(
        timers: Timers,
        store: Arc<dyn WakeStore>,
        driver: Arc<dyn DriverHealth>,
        allow_private: bool,
    ) -> Self {
        Self {
            started_at_ms: timers.runtime().now_ms(),
            timers,
            store,
            driver,
            in_flight: InFlight::default(),
            allow_private,
        }
    }

    /// The injected host.
    pub(crate) fn runtime(&self) -> &Runtime {
        self.timers.runtime()
    }

    /// The injected host's clock, which is the store's too, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.timers.runtime().now_ms()
    }

    /// Whether private targets may be scheduled.
    pub(crate) fn allow_private(&self) -> bool {
        self.allow_private
    }

    pub(super) async fn view(
        &self,
        partition: &PartitionName,
        id: &TimerId,
    ) -> Result<Option<TimerView>, ServiceError> {
        let reference = id.reference();
        for _ in 0..LOOKS_MAX {
            match self
                .timers
                .get(partition.partition(), WEBHOOK, &reference)
                .await
            {
                Err(TimerError::Contended) if !planted(Mutant::ContendedReadGivesUp) => {}
                found => return Ok(found?),
            }
        }
        Err(ServiceError::Contended)
    }

    /// A page of webhook timers.
    pub(super) async fn page(
        &self,
        partition: &PartitionName,
        query: &ListQuery,
    ) -> Result<TimerPage, ServiceError> {
        for _ in 0..LOOKS_MAX {
            match self.timers.list(partition.partition(), query).await {
                Err(TimerError::Contended) if !planted(Mutant::ContendedReadGivesUp) => {}
                found => return Ok(found?),
            }
        }
        Err(ServiceError::Contended)
    }
}

/// The stored form of a record, if it is not too large.
pub(super) fn encoded(record: &WebhookRecord) -> Result<Bytes, ServiceError> {
    let payload = record.encode().map_err(ServiceError::internal)?;
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(ServiceError::field("/payload", too_large(payload.len())));
    }
    Ok(payload)
}

/// A webhook timer.
pub(super) fn webhook_timer(id: &TimerId, due_at_ms: u64, payload: Bytes) -> Timer {
    Timer::new(WEBHOOK, id.reference())
        .due_at(due_at_ms)
        .payload(payload)
        .named()
}

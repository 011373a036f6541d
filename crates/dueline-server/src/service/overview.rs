//! What there is: partitions, counts, limits.

use dueline::limits::{DUE_MS_MAX, PARTITION_BYTES_MAX, PAYLOAD_BYTES_MAX, REFERENCE_BYTES_MAX};
use dueline::store::Partition;
use serde::Serialize;

use super::batch::BATCH_TIMERS_MAX;
use super::core::Service;
use super::error::ServiceError;
use super::health::DriverCounts;
use super::idempotency::{KEY_BYTES_MAX, REMEMBERED_MS};
use super::names::PartitionName;
use super::page::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PageRequest, position, token};
use crate::time_text::{rfc3339_ms, span_text};
use crate::webhook::WEBHOOK;

/// A page of partitions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartitionListJson {
    partitions: Vec<PartitionJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// A partition that holds rows.
#[derive(Clone, Debug, Serialize)]
struct PartitionJson {
    /// Bytes that are not UTF-8 are shown as U+FFFD: such a partition is a library's, and cannot be
    /// addressed over HTTP.
    partition: String,
}

/// Counts of the server, and of one partition if it was asked for.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StatsJson {
    version: &'static str,
    started_at: String,
    now: String,
    /// Since the start.
    driver: DriverCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<PartitionStatsJson>,
}

#[derive(Clone, Debug, Serialize)]
struct PartitionStatsJson {
    partition: String,
    /// Rows of every kind, names and records included.
    rows: u64,
    /// May be up to a minute old.
    bytes: u64,
    timers: CountJson,
    dead_letters: CountJson,
    next_due_at: Option<String>,
    paused_since: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct CountJson {
    count: usize,
    /// Whether there are more than were counted.
    more: bool,
}

/// Every limit of the API.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LimitsJson {
    partition_bytes_max: usize,
    timer_id_bytes_max: usize,
    timer_bytes_max: usize,
    due_at_max: String,
    batch_timers_max: usize,
    page_size_default: usize,
    page_size_max: usize,
    body_bytes_max: usize,
    batch_body_bytes_max: usize,
    idempotency_key_bytes_max: usize,
    idempotency_keys_kept_for: String,
}

impl Service {
    /// One page of the partitions that hold rows.
    pub(crate) async fn partitions(
        &self,
        page: &PageRequest,
    ) -> Result<PartitionListJson, ServiceError> {
        let scope = ["partitions"];
        let after = match &page.token {
            None => None,
            Some(token) => Some(
                Partition::new(position(&scope, token)?).map_err(|_| ServiceError::PageToken)?,
            ),
        };
        let found = self.store.partitions(after.as_ref(), page.size).await?;
        Ok(PartitionListJson {
            partitions: found
                .partitions
                .iter()
                .map(|partition| PartitionJson {
                    partition: String::from_utf8_lossy(partition.as_bytes()).into_owned(),
                })
                .collect(),
            next_page_token: found.next.map(|last| token(&scope, last.as_bytes())),
        })
    }

    /// Counts of the server, and of a partition if one is named.
    pub(crate) async fn stats(
        &self,
        partition: Option<&PartitionName>,
    ) -> Result<StatsJson, ServiceError> {
        let partition = match partition {
            None => None,
            Some(partition) => Some(self.partition_stats(partition).await?),
        };
        Ok(StatsJson {
            version: env!("CARGO_PKG_VERSION"),
            started_at: rfc3339_ms(self.started_at_ms),
            now: rfc3339_ms(self.now_ms()),
            driver: self.driver.counts(),
            partition,
        })
    }

    async fn partition_stats(
        &self,
        name: &PartitionName,
    ) -> Result<PartitionStatsJson, ServiceError> {
        let stats = self.store.stats(name.partition()).await?;
        let lanes = self.timers.lanes(name.partition()).await?;
        let lane = lanes.iter().find(|lane| lane.kind == WEBHOOK);
        let count = |lane: dueline::timers::LaneCount| CountJson {
            count: lane.rows,
            more: lane.more,
        };
        Ok(PartitionStatsJson {
            partition: name.as_str().to_owned(),
            rows: stats.rows,
            bytes: stats.bytes,
            timers: lane.map(|lane| count(lane.timers)).unwrap_or_default(),
            dead_letters: lane.map(|lane| count(lane.dead)).unwrap_or_default(),
            next_due_at: lane.and_then(|lane| lane.first_due_ms).map(rfc3339_ms),
            paused_since: lane.and_then(|lane| lane.paused_since_ms).map(rfc3339_ms),
        })
    }
}

/// Every limit of the API.
pub(crate) fn limits(body_bytes_max: usize, batch_body_bytes_max: usize) -> LimitsJson {
    LimitsJson {
        partition_bytes_max: PARTITION_BYTES_MAX,
        timer_id_bytes_max: REFERENCE_BYTES_MAX,
        timer_bytes_max: PAYLOAD_BYTES_MAX,
        due_at_max: rfc3339_ms(DUE_MS_MAX),
        batch_timers_max: BATCH_TIMERS_MAX,
        page_size_default: PAGE_SIZE_DEFAULT,
        page_size_max: PAGE_SIZE_MAX,
        body_bytes_max,
        batch_body_bytes_max,
        idempotency_key_bytes_max: KEY_BYTES_MAX,
        idempotency_keys_kept_for: span_text(REMEMBERED_MS),
    }
}

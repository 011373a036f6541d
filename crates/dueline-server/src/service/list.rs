use dueline::Bytes;
use dueline::timers::{ListCursor, ListQuery, TimerState, TimerStates};
use serde::Serialize;

use super::core::Service;
use super::error::ServiceError;
use super::names::PartitionName;
use super::page::{PageRequest, text_position, token};
use super::shown::TimerJson;
use crate::webhook::WEBHOOK;

/// Which timers to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListFilter {
    /// Only those shown in one of these states.
    pub(crate) states: Option<Vec<TimerState>>,
    /// Only those looked at next before this, in milliseconds since 1970.
    pub(crate) due_before_ms: Option<u64>,
    /// Only those whose id begins like this.
    pub(crate) prefix: Option<String>,
}

/// A page of timers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimerListJson {
    timers: Vec<TimerJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

impl Service {
    /// One page of the timers of a partition.
    ///
    /// By prefix, or without a filter, it walks the names: a timer that exists throughout is listed
    /// exactly once. By state or due alone it walks the lane.
    pub(crate) async fn list(
        &self,
        partition: &PartitionName,
        filter: &ListFilter,
        page: &PageRequest,
    ) -> Result<TimerListJson, ServiceError> {
        let states = filter.states.as_deref();
        let by_name =
            filter.prefix.is_some() || (states.is_none() && filter.due_before_ms.is_none());
        let mut query = ListQuery::new(WEBHOOK);
        query.states = states.map_or(TimerStates::all(), stored_states);
        query.due_before_ms = filter.due_before_ms;
        query.prefix = by_name.then(|| Bytes::from(filter.prefix.clone().unwrap_or_default()));
        query.limit = page.size;
        let shown_states = format!("{states:?}");
        let scope = ["timers", partition.as_str(), &shown_states];
        if let Some(token) = &page.token {
            let cursor: ListCursor = text_position(&scope, token)?
                .parse()
                .map_err(|_| ServiceError::PageToken)?;
            query.after = Some(cursor);
        }
        let found = match self.page(partition, &query).await {
            // Everything else of the query was checked before: the cursor is another query's.
            Err(ServiceError::Fields(_)) if query.after.is_some() => {
                return Err(ServiceError::PageToken);
            }
            found => found?,
        };
        let now_ms = self.now_ms();
        let timers = found
            .timers
            .iter()
            .filter(|view| states.is_none_or(|wanted| wanted.contains(&view.state_at(now_ms))))
            .map(|view| TimerJson::of_view(partition.as_str(), view, now_ms))
            .collect();
        Ok(TimerListJson {
            timers,
            next_page_token: found
                .next
                .map(|cursor| token(&scope, cursor.to_string().as_bytes())),
        })
    }
}

/// The stored states that may be shown as one of these: a claim that has ended is shown as retrying.
fn stored_states(wanted: &[TimerState]) -> TimerStates {
    let claimed_too = wanted
        .contains(&TimerState::Retrying)
        .then_some(TimerState::Claimed);
    wanted.iter().copied().chain(claimed_too).collect()
}

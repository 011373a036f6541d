//! Kinds by their names: allotted once by a row of the database, and kept.

use std::sync::Arc;

use dueline::ordered::OrderedMap;
use dueline::store::Partition;
use dueline::timers::{Registration, Registry, RetryPolicy, TimerError, TimerKind, Timers};

use crate::handler::HostHandler;
use crate::outcome::time_of;
use crate::platform::KindOptions;

/// The kinds that the database knows, by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    names: Arc<OrderedMap<String, TimerKind>>,
}

impl Kinds {
    /// Reads the names there are, and allots kinds to those of `wanted` that have none.
    pub(crate) async fn allot(
        timers: &Timers,
        partition: &Partition,
        wanted: &[KindOptions],
    ) -> Result<Self, TimerError> {
        let known = timers.kind_names(partition).await?;
        let mut names: OrderedMap<String, TimerKind> = known.into_iter().collect();
        for options in wanted {
            let name = options.name();
            if !names.contains_key(&name) {
                let kind = timers.kind_for_name(partition, &name).await?;
                names.insert(name, kind);
            }
        }
        Ok(Self {
            names: Arc::new(names),
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, TimerKind)> {
        self.names.iter().map(|(name, kind)| (name.as_str(), *kind))
    }

    /// The registry of the kinds that have a handler in this version of the application.
    pub(crate) fn registry(
        &self,
        wanted: &[KindOptions],
        handler: &HostHandler,
    ) -> Result<Registry, TimerError> {
        let mut registry = Registry::new();
        for options in wanted {
            if let Some(kind) = self.names.get(&options.name()) {
                registry
                    .register(*kind, registration(options, handler.clone()))
                    .map_err(|error| TimerError::Invalid(error.to_string().into()))?;
            }
        }
        Ok(registry)
    }
}

fn registration(options: &KindOptions, handler: HostHandler) -> Registration {
    let mut registration = if options.is_detached() {
        Registration::detached(handler)
    } else {
        Registration::inline(handler)
    };
    if let Some(group_max) = options.group_max() {
        registration = registration.group_max(group_max);
    }
    if let Some(concurrency) = options.concurrency() {
        registration = registration.concurrency(concurrency);
    }
    if let Some(deadline_ms) = options.deadline_ms() {
        registration = registration.deadline_ms(time_of(deadline_ms));
    }
    if let Some(per_tick_max) = options.per_tick_max() {
        registration = registration.per_tick_max(per_tick_max);
    }
    registration
        .codec_version(options.codec_version().unwrap_or(1))
        .retry(retry(options, RetryPolicy::default()))
}

/// How failures are retried; what is not said is as in `default`.
pub(crate) fn retry(options: &KindOptions, default: RetryPolicy) -> RetryPolicy {
    RetryPolicy {
        attempts_max: match options.attempts_max() {
            Some(0) => None,
            Some(attempts_max) => Some(attempts_max),
            None => default.attempts_max,
        },
        initial_ms: options
            .retry_initial_ms()
            .map_or(default.initial_ms, time_of),
        max_ms: options.retry_max_ms().map_or(default.max_ms, time_of),
        jitter_percent: options
            .retry_jitter_percent()
            .unwrap_or(default.jitter_percent),
    }
}

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::call::{ErasedDetached, erase};
use super::typed::TypedDetached;
use super::{
    DetachedHandler, DueTimer, HandlerError, KindSet, RetryPolicy, TimerHandler, TimerKind, Typed,
    TypedDetachedHandler, TypedHandler,
};
use crate::future::contain;
use crate::limits::GROUP_TIMERS_MAX;
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedMap;

/// Default deadline of an inline fire, in milliseconds.
pub const INLINE_DEADLINE_MS: u64 = 5_000;
/// Default deadline of a detached call, in milliseconds.
pub const DETACHED_DEADLINE_MS: u64 = 30_000;

/// How a kind's handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Within the tick, one after another, up to `group_max` timers in one commit.
    Inline {
        /// 1 to 1,024; 1 commits each timer on its own, with the same results.
        group_max: u16,
    },
    /// Outside the tick, after a durable claim.
    Detached {
        /// Most calls of this kind at a time, in the whole process.
        concurrency: u32,
    },
}

#[derive(Clone)]
pub(crate) enum Handler {
    Inline(Arc<dyn TimerHandler>),
    Detached(Arc<dyn ErasedDetached>),
}

/// A handler and how it is run.
#[derive(Clone)]
#[must_use]
pub struct Registration {
    pub(crate) handler: Handler,
    pub(crate) execution: Execution,
    pub(crate) deadline_ms: u64,
    pub(crate) retry: RetryPolicy,
    pub(crate) per_tick_max: Option<u32>,
    pub(crate) codec_version: u16,
}

impl Registration {
    /// A handler that reads and writes its own partition, one timer a commit, deadline 5 s.
    pub fn inline(handler: impl TimerHandler + 'static) -> Self {
        Self {
            handler: Handler::Inline(Arc::new(handler)),
            execution: Execution::Inline { group_max: 1 },
            deadline_ms: INLINE_DEADLINE_MS,
            retry: RetryPolicy::default(),
            per_tick_max: None,
            codec_version: 0,
        }
    }

    /// An inline handler whose payload is a JSON value of a type.
    pub fn typed<H: TypedHandler + 'static>(handler: H) -> Self {
        Self {
            codec_version: H::CODEC_VERSION,
            ..Self::inline(Typed::new(handler))
        }
    }

    /// A handler that calls out, up to 16 calls at a time, deadline 30 s.
    pub fn detached(handler: impl DetachedHandler) -> Self {
        Self {
            handler: Handler::Detached(erase(handler)),
            execution: Execution::Detached { concurrency: 16 },
            deadline_ms: DETACHED_DEADLINE_MS,
            retry: RetryPolicy::default(),
            per_tick_max: None,
            codec_version: 0,
        }
    }

    /// A detached handler whose payload is a JSON value of a type.
    pub fn typed_detached<H: TypedDetachedHandler>(handler: H) -> Self {
        Self {
            codec_version: H::CODEC_VERSION,
            ..Self::detached(TypedDetached(handler))
        }
    }

    /// For an inline handler: commits up to this many timers together, 1 to 1,024. The results are
    /// those of 1; the commits are fewer.
    pub fn group_max(mut self, group_max: u16) -> Self {
        if let Execution::Inline { group_max: current } = &mut self.execution {
            let most = u16::try_from(GROUP_TIMERS_MAX).unwrap_or(u16::MAX);
            *current = group_max.clamp(1, most);
        }
        self
    }

    /// For a detached handler: most calls of this kind at a time, at least 1.
    pub fn concurrency(mut self, concurrency: u32) -> Self {
        if let Execution::Detached {
            concurrency: current,
        } = &mut self.execution
        {
            *current = concurrency.max(1);
        }
        self
    }

    /// How long a run may take, in milliseconds of monotonic time, at least 1.
    pub fn deadline_ms(mut self, deadline_ms: u64) -> Self {
        self.deadline_ms = deadline_ms.max(1);
        self
    }

    /// How failures are retried.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Most runs of this kind in one tick, at least 1; it can only lower the budget's.
    pub fn per_tick_max(mut self, per_tick_max: u32) -> Self {
        self.per_tick_max = Some(per_tick_max.max(1));
        self
    }

    /// The version of the payload's codec. Timers that an earlier version could not decode are
    /// taken out of the dead class when a handler with a higher one is registered.
    pub fn codec_version(mut self, codec_version: u16) -> Self {
        self.codec_version = codec_version;
        self
    }

    /// The policy of a timer: its own if it has one, else its kind's.
    pub(crate) fn policy_of(&self, timer: &DueTimer) -> RetryPolicy {
        let own = contain(|| match &self.handler {
            Handler::Inline(handler) => handler.retry_policy(timer),
            Handler::Detached(handler) => handler.retry_policy(timer),
        });
        answered(own, timer).unwrap_or(self.retry)
    }

    /// How long a run of a timer may take, in milliseconds: its own limit if it has one, else its
    /// kind's.
    pub(crate) fn deadline_ms_of(&self, timer: &DueTimer) -> u64 {
        let own = contain(|| match &self.handler {
            Handler::Inline(_) => None,
            Handler::Detached(handler) => handler.deadline_ms(timer),
        });
        answered(own, timer).unwrap_or(self.deadline_ms).max(1)
    }

    /// How long a run may take, for a driver that watches it.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// The version of the payload's codec, for a driver that brings back what an earlier one could
    /// not decode.
    pub fn codec(&self) -> u16 {
        self.codec_version
    }

    /// How the handler runs.
    pub fn execution(&self) -> Execution {
        self.execution
    }
}

/// What a handler said of a timer; nothing if it panicked, which is logged.
fn answered<T>(answer: Result<Option<T>, HandlerError>, timer: &DueTimer) -> Option<T> {
    answer.unwrap_or_else(|error| {
        tracing::error!(
            kind = %timer.kind(),
            reference = %timer.reference().escape_ascii(),
            %error,
            "a handler was asked about a timer; what its kind says holds"
        );
        None
    })
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("execution", &self.execution)
            .field("deadline_ms", &self.deadline_ms)
            .field("retry", &self.retry)
            .field("per_tick_max", &self.per_tick_max)
            .field("codec_version", &self.codec_version)
            .finish_non_exhaustive()
    }
}

/// Why a handler could not be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryError {
    /// Kind 0 belongs to nobody.
    InvalidKind,
    /// The kind has a handler already.
    Duplicate(TimerKind),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidKind => write!(f, "kind 0 cannot have a handler; use 16 to 239"),
            Self::Duplicate(kind) => write!(f, "kind {kind} has a handler already"),
        }
    }
}

impl std::error::Error for RegistryError {}

/// The handlers of a process, by kind.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    kinds: OrderedMap<TimerKind, Registration>,
}

impl Registry {
    /// A registry without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the handler of a kind.
    ///
    /// # Errors
    /// Kind 0, or a kind that has a handler already.
    pub fn register(
        &mut self,
        kind: TimerKind,
        registration: Registration,
    ) -> Result<(), RegistryError> {
        if !kind.is_valid() {
            return Err(RegistryError::InvalidKind);
        }
        if self.kinds.contains_key(&kind) {
            return Err(RegistryError::Duplicate(kind));
        }
        self.kinds.insert(kind, registration);
        Ok(())
    }

    /// The registry with one more handler, for building in one expression.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn with(
        mut self,
        kind: TimerKind,
        registration: Registration,
    ) -> Result<Self, RegistryError> {
        self.register(kind, registration)?;
        Ok(self)
    }

    /// The registration of a kind.
    pub fn get(&self, kind: TimerKind) -> Option<&Registration> {
        self.kinds.get(&kind)
    }

    /// The kinds that have a handler, ascending.
    pub fn kinds(&self) -> KindSet {
        if planted(Mutant::DriverAsksForUnknownKinds) {
            return KindSet::all();
        }
        self.kinds.keys().copied().collect()
    }

    /// Kinds and their registrations, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (TimerKind, &Registration)> {
        self.kinds
            .iter()
            .map(|(kind, registration)| (*kind, registration))
    }
}

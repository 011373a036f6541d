use std::borrow::Cow;
use std::fmt;

use crate::store::{StoreError, StoreErrorKind};

/// Why a timer could not be scheduled, changed or read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TimerError {
    /// The request cannot be carried out as it stands: a size, a due, a kind. Correct it.
    Invalid(Cow<'static, str>),
    /// There is no such timer now: it never was, has fired, or was cancelled.
    NotFound,
    /// The timer is not the generation that was asked for. Read it again.
    GenerationMismatch {
        /// The generation it has now.
        current: u64,
    },
    /// A run of the timer is claimed; the call may be under way. Try again when the claim has ended.
    Claimed {
        /// When the claim ends, in milliseconds since 1970.
        ends_at_ms: u64,
    },
    /// Other writers changed the timer each time it was tried, eight times. Try again later.
    Contended,
    /// What the verb asks the application did not answer in time. Nothing was written, and whatever was
    /// asked is dropped; try again later.
    Deadline {
        /// How long it had, in milliseconds.
        limit_ms: u64,
    },
    /// The store's answer.
    Store(StoreError),
}

impl TimerError {
    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(detail.into())
    }
}

impl From<StoreError> for TimerError {
    fn from(error: StoreError) -> Self {
        if error.kind() == StoreErrorKind::Invalid {
            Self::Invalid(Cow::Owned(error.detail().to_owned()))
        } else {
            Self::Store(error)
        }
    }
}

impl fmt::Display for TimerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(detail) => write!(f, "{detail}"),
            Self::NotFound => write!(f, "there is no such timer"),
            Self::GenerationMismatch { current } => {
                write!(f, "the timer has changed: its generation is now {current}")
            }
            Self::Claimed { ends_at_ms } => write!(
                f,
                "a run of the timer may be under way; its claim ends at {ends_at_ms} ms"
            ),
            Self::Contended => {
                write!(f, "other writers kept changing the timer; try again later")
            }
            Self::Deadline { limit_ms } => write!(
                f,
                "what was asked of the application did not answer within {limit_ms} ms; nothing was written"
            ),
            Self::Store(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TimerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

use dueline::store::StoreError;
use dueline::timers::TimerError;

use super::field_errors::FieldErrors;

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub(crate) enum ServiceError {
    /// Understood but impossible: these fields are why.
    Fields(FieldErrors),
    /// Nothing by that id now.
    TimerNotFound,
    /// No dead letter by that id now.
    DeadLetterNotFound,
    /// The timer was to be created and is there already.
    AlreadyExists {
        /// Its generation.
        generation: u64,
    },
    /// The timer is not what the request was made for.
    Changed {
        /// Its generation now; `None` if there is none.
        current: Option<u64>,
    },
    /// A delivery of the timer is under way.
    InDelivery {
        /// When its claim ends at the latest, in milliseconds since 1970.
        ends_at_ms: u64,
    },
    /// Other writers kept changing the timer.
    Contended,
    /// The page token is not one, or belongs to another list.
    PageToken,
    /// The idempotency key was used for another request.
    KeyReused,
    /// A request with this idempotency key is being carried out now.
    KeyInFlight,
    /// The store's answer.
    Store(StoreError),
    /// A fault of the server itself, for the log alone.
    Internal(String),
}

impl ServiceError {
    pub(crate) fn internal(detail: impl std::fmt::Display) -> Self {
        Self::Internal(detail.to_string())
    }

    /// One field that is why.
    pub(crate) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Fields(FieldErrors::one(pointer, detail))
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        TimerError::from(error).into()
    }
}

impl From<TimerError> for ServiceError {
    fn from(error: TimerError) -> Self {
        match error {
            TimerError::Invalid(detail) => Self::field("", detail),
            TimerError::NotFound => Self::TimerNotFound,
            TimerError::GenerationMismatch { current } => Self::Changed {
                current: Some(current),
            },
            TimerError::Claimed { ends_at_ms } => Self::InDelivery { ends_at_ms },
            TimerError::Contended => Self::Contended,
            TimerError::Store(error) => Self::Store(error),
            other => Self::Internal(other.to_string()),
        }
    }
}

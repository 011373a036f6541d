use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a call of the store gave no answer. Each kind says what the caller should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The caller broke the contract (a size, a limit of 0, a foreign cursor). Nothing was written.
    /// Correct the call.
    Invalid,
    /// The store cannot do this, or its schema is newer than this binary. Nothing was written.
    Unsupported,
    /// What is stored does not decode, or the file is damaged. Look at it with `dueline doctor`.
    Corrupt,
    /// At capacity: puts are refused; reads, deletes and the engine's own moves keep working.
    /// Nothing was written. Make room.
    Full,
    /// The backend could not be asked. Nothing was written. Try again later.
    Unavailable,
    /// The commit's outcome is not known: the batch is there in full or not at all. Read again
    /// before deciding anything.
    Unknown,
}

/// An error of the store: its kind, a sentence for the operator, and the backend's own error.
///
/// `Display` never shows the backend's text, so that it may be sent to a client; `source` does.
#[derive(Clone)]
pub struct StoreError(Box<Told>);

/// In a box: nearly every answer of the engine has room for an error, and is moved far more often than it is one.
#[derive(Clone)]
struct Told {
    kind: StoreErrorKind,
    detail: Cow<'static, str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error of this kind; `detail` is a sentence of ours, without backend text.
    pub fn new(kind: StoreErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Told {
            kind,
            detail: detail.into(),
            source: None,
        }))
    }

    /// The caller broke the contract.
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StoreErrorKind::Invalid, detail)
    }

    /// The store cannot do this.
    pub fn unsupported(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StoreErrorKind::Unsupported, detail)
    }

    /// What is stored does not decode.
    pub fn corrupt(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StoreErrorKind::Corrupt, detail)
    }

    /// The store is at capacity.
    pub fn full(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StoreErrorKind::Full, detail)
    }

    /// The backend could not be asked; nothing was written.
    pub fn unavailable(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StoreErrorKind::Unavailable, detail)
    }

    /// The commit's outcome is not known.
    pub fn unknown(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StoreErrorKind::Unknown, detail)
    }

    /// The same error with the backend's own behind it, for logs.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// The sentence that goes with it.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.0.kind {
            StoreErrorKind::Invalid => "invalid request to the store",
            StoreErrorKind::Unsupported => "not supported by this store",
            StoreErrorKind::Corrupt => "corrupt data in the store",
            StoreErrorKind::Full => "the store is full",
            StoreErrorKind::Unavailable => "the store is unavailable",
            StoreErrorKind::Unknown => "the outcome of the commit is unknown",
        };
        write!(f, "{what}: {}", self.0.detail)
    }
}

impl fmt::Debug for StoreError {
    /// Kind and sentence as `Display` shows them, with the backend's own error behind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreError({self}")?;
        if let Some(source) = &self.0.source {
            write!(f, "; {source:?}")?;
        }
        f.write_str(")")
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

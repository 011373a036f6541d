use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Clock;
use dueline::sql::SizeLimit;

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: the log is synced at every commit (`synchronous=FULL`).
    #[default]
    PowerLoss,
    /// The end of the process, not a power cut: the log is synced at checkpoints
    /// (`synchronous=NORMAL`). Faster for single commits; in groups hardly.
    ProcessCrash,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PowerLoss => "power-loss",
            Self::ProcessCrash => "process-crash",
        })
    }
}

/// The page size of a new database; an existing one keeps its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// 4,096 bytes: right for payloads up to about 900 bytes.
    #[default]
    Bytes4096,
    /// 8,192 bytes: faster for larger payloads, which would spill to overflow pages.
    Bytes8192,
}

impl PageSize {
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Bytes4096 => 4_096,
            Self::Bytes8192 => 8_192,
        }
    }
}

/// How to open a [`SqliteStore`](crate::SqliteStore).
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) page_size: PageSize,
    pub(crate) busy_timeout: Duration,
    pub(crate) size_limit: Option<SizeLimit>,
    pub(crate) reader_threads: usize,
}

impl Options {
    /// Power-loss durability, pages of 4,096 bytes, a busy timeout of 5 s, no size limit, 2 reader
    /// threads. The clock is the backend's: time bounds and wakes are decided by it.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            durability: Durability::default(),
            page_size: PageSize::default(),
            busy_timeout: Duration::from_secs(5),
            size_limit: None,
            reader_threads: 2,
        }
    }

    /// What an acknowledged commit survives.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The page size, if the database is created.
    #[must_use]
    pub fn page_size(mut self, page_size: PageSize) -> Self {
        self.page_size = page_size;
        self
    }

    /// How long a commit waits for a write lock that another process holds before it is
    /// `Unavailable`.
    #[must_use]
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// How large the database may grow. The log beside it (16 MiB as a rule) is not counted.
    #[must_use]
    pub fn size_limit(mut self, size_limit: SizeLimit) -> Self {
        self.size_limit = Some(size_limit);
        self
    }

    /// How many threads serve the reads of asynchronous callers, at least 1.
    #[must_use]
    pub fn reader_threads(mut self, reader_threads: usize) -> Self {
        self.reader_threads = reader_threads.max(1);
        self
    }
}

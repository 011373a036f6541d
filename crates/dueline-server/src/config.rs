use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline_sqlite::Durability;

use crate::guard::{Lookup, SystemLookup};

/// The port unless said otherwise.
pub const PORT_DEFAULT: u16 = 7431;

/// How a server is to run.
///
/// ```
/// use dueline_server::{Config, Durability};
///
/// let config = Config::new("/var/lib/dueline")
///     .listen(([127, 0, 0, 1], 0).into())
///     .durability(Durability::ProcessCrash);
/// assert_eq!(config.data_dir().to_str(), Some("/var/lib/dueline"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) durability: Durability,
    pub(crate) allow_private_targets: bool,
    pub(crate) deliveries_max: u32,
    pub(crate) connections_max: u32,
    pub(crate) grace: Duration,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) lookup: Arc<dyn Lookup>,
}

impl Config {
    /// A server on 127.0.0.1:7431 that keeps everything in this directory, which is made if it does
    /// not exist.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT_DEFAULT)),
            durability: Durability::default(),
            allow_private_targets: false,
            deliveries_max: 256,
            connections_max: 512,
            grace: Duration::from_secs(10),
            runtime: None,
            lookup: Arc::new(SystemLookup),
        }
    }

    /// The address to listen on: a loopback one. Port 0 takes a free one.
    pub fn listen(mut self, listen: SocketAddr) -> Self {
        self.listen = listen;
        self
    }

    /// What an acknowledged timer survives. Default: a power loss.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether webhooks may go to loopback, private and link-local addresses: for local use. Default:
    /// they are refused.
    pub fn allow_private_targets(mut self, allow: bool) -> Self {
        self.allow_private_targets = allow;
        self
    }

    /// Most deliveries under way at a time, at least 1. Default: 256.
    pub fn deliveries_max(mut self, deliveries: u32) -> Self {
        self.deliveries_max = deliveries.max(1);
        self
    }

    /// Most connections that clients hold at a time, at least 1; later ones wait. Default: 512, which
    /// together with the deliveries stays below the 1,024 open files that a process usually may have.
    pub fn connections_max(mut self, connections: u32) -> Self {
        self.connections_max = connections.max(1);
        self
    }

    /// How long a stop waits for requests and deliveries under way. Default: 10 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Another host than the system's: clocks, sleep and entropy, for tests.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Another resolver of host names than the system's. What it answers is checked all the same.
    pub fn lookup(mut self, lookup: Arc<dyn Lookup>) -> Self {
        self.lookup = lookup;
        self
    }

    /// Where database, lock and secrets lie.
    pub fn data_dir(&self) -> &PathBuf {
        &self.data_dir
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("data_dir", &self.data_dir)
            .field("listen", &self.listen)
            .field("durability", &self.durability)
            .field("allow_private_targets", &self.allow_private_targets)
            .field("deliveries_max", &self.deliveries_max)
            .field("connections_max", &self.connections_max)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

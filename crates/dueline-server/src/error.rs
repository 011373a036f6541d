use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::webhook::SecretError;

/// Why a server could not be started. Each says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address can be reached from other machines.
    #[error(
        "refusing to listen on {address}: without access tokens the server answers to this machine \
         alone; listen on a loopback address such as 127.0.0.1:{}",
        address.port()
    )]
    NotLoopback {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}; is another server running there?")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The data directory cannot be made.
    #[error("cannot make the data directory {}", path.display())]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] dueline_sqlite::OpenError),
    /// The signing secrets cannot be read.
    #[error(transparent)]
    Secrets(#[from] SecretError),
    /// The HTTP client for webhooks cannot be built.
    #[error("cannot prepare HTTPS for webhooks; are root certificates installed on this machine?")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The driver cannot be started.
    #[error(transparent)]
    Driver(#[from] dueline_tokio::StartError),
    /// The system gives no clock, entropy or thread.
    #[error("the system gives no clock, entropy or thread")]
    System(#[source] io::Error),
    /// A fault of the server itself.
    #[error("the server could not be put together: {0}")]
    Internal(String),
}

//! The connections that clients hold. They are bounded in number, so that the files and sockets of the
//! process are left for deliveries and the store, and one on which nothing moves is closed.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use dueline::BoxFuture;
use dueline::runtime::Runtime;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long nothing may move on a connection. Longer than a body may take to arrive.
const QUIET_MAX: Duration = Duration::from_secs(60);

/// Accepts connections while there are fewer than a limit; later ones wait in the system's queue.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    runtime: Runtime,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener, connections_max: u32, runtime: Runtime) -> Self {
        let places = usize::try_from(connections_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            listener,
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            runtime,
        }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // An error means that the semaphore was closed, which nobody does: no bound then.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Answers are small: waiting to fill a packet would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a socket keeps its delay");
        }
        let connection = Connection {
            stream,
            moved_at: self.runtime.monotonic(),
            look: Some(self.runtime.sleep(QUIET_MAX)),
            runtime: self.runtime.clone(),
            _place: place,
        };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that holds its place until it ends.
pub(crate) struct Connection {
    stream: TcpStream,
    /// When something last moved, by the monotonic clock.
    moved_at: Duration,
    /// The next look at how long nothing has moved; `None` once it was too long.
    look: Option<BoxFuture<'static, ()>>,
    runtime: Runtime,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// What was polled, or an error if it does not end and nothing has moved for too long.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.moved_at = self.runtime.monotonic();
            return polled;
        }
        while let Some(look) = &mut self.look {
            if look.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let quiet = self.runtime.monotonic().saturating_sub(self.moved_at);
            let left = QUIET_MAX.saturating_sub(quiet);
            self.look = (!left.is_zero()).then(|| self.runtime.sleep(left));
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watched(context, polled)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watched(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

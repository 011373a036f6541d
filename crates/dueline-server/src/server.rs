use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline::store::WakeStore;
use dueline::timers::{Engine, Registration, Registry};
use dueline_sqlite::{Durability, Options, SqliteStore};
use dueline_tokio::{Driver, DriverStore, Handle, system_runtime};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::connections::BoundedListener;
use crate::driver_health::HandleHealth;
use crate::error::StartError;
use crate::routes::router;
use crate::service::{EXPIRY_GROUP_MAX, IDEMPOTENCY_EXPIRY, IdempotencyExpiry, Service};
use crate::webhook::{SecretStore, WEBHOOK, WebhookClient, WebhookHandler};

const DATABASE_FILE: &str = "dueline.db";
const SECRETS_FILE: &str = "webhook-secrets.json";

/// Where a server begins: [`Server::start`].
#[derive(Debug)]
pub struct Server;

/// A server that listens and delivers. Dropped without [`shutdown`](Self::shutdown) it stops as
/// after a crash: nothing is lost.
#[derive(Debug)]
pub struct RunningServer {
    address: SocketAddr,
    data_dir: PathBuf,
    durability: Durability,
    grace: Duration,
    runtime: Runtime,
    secrets: Arc<SecretStore>,
    store: SqliteStore,
    driver: Handle,
    stop: watch::Sender<bool>,
    http: JoinSet<()>,
}

/// How a shutdown ended. Nothing is lost in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether every request under way was answered within the grace period.
    pub requests_finished: bool,
    /// Whether every delivery under way ended within the grace period.
    pub deliveries_finished: bool,
    /// Deliveries that were cut and given back: due at the next start, no attempt charged.
    pub deliveries_released: u64,
}

/// What lies on the disk, opened.
struct Opened {
    store: SqliteStore,
    secrets: SecretStore,
}

impl Server {
    /// Opens the data directory, listens, and delivers what is due.
    ///
    /// # Errors
    /// [`StartError`], which says what to do.
    pub async fn start(config: Config) -> Result<RunningServer, StartError> {
        if !config.listen.ip().to_canonical().is_loopback() {
            return Err(StartError::NotLoopback {
                address: config.listen,
            });
        }
        let runtime = match &config.runtime {
            Some(runtime) => runtime.clone(),
            None => system_runtime().map_err(StartError::System)?,
        };
        let opened = open(&config, &runtime).await?;
        if opened.store.unclean_opened_at_ms().is_some() {
            tracing::info!("recovered from an unclean stop; every acknowledged timer is there");
        }
        let listener = TcpListener::bind(config.listen).await;
        let (listener, address) = listener
            .and_then(|listener| {
                let address = listener.local_addr()?;
                Ok((listener, address))
            })
            .map_err(|source| StartError::Listen {
                address: config.listen,
                source,
            })?;
        let secrets = Arc::new(opened.secrets);
        let registry = registry(&config, &runtime, &secrets)?;
        let driver_store = DriverStore::from(Arc::new(opened.store.clone()));
        let engine = Engine::new(driver_store.to_store(), runtime.clone(), registry)
            .calls_max(config.deliveries_max);
        let driver = Driver::builder(engine, driver_store).start()?;
        let service = Service::new(
            driver.timers().clone(),
            driver.store(),
            Arc::new(HandleHealth(driver.clone())),
            config.allow_private_targets,
        );
        let (stop, stopped) = watch::channel(false);
        let mut http = JoinSet::new();
        let listener = BoundedListener::new(listener, config.connections_max, runtime.clone());
        http.spawn(serve(listener, service, stopped));
        tracing::debug!(
            %address,
            data_dir = %config.data_dir.display(),
            durability = %config.durability,
            "listening"
        );
        Ok(RunningServer {
            address,
            data_dir: config.data_dir,
            durability: config.durability,
            grace: config.grace,
            runtime,
            secrets,
            store: opened.store,
            driver,
            stop,
            http,
        })
    }
}

/// Opens what lies on the disk, on a thread that may block.
async fn open(config: &Config, runtime: &Runtime) -> Result<Opened, StartError> {
    let data_dir = config.data_dir.clone();
    let options = Options::new(Arc::clone(runtime.clock())).durability(config.durability);
    let opening = move || {
        make_private(&data_dir).map_err(|source| StartError::DataDir {
            path: data_dir.clone(),
            source,
        })?;
        // The store first: its lock keeps a second server from the secrets too.
        let store = SqliteStore::open(data_dir.join(DATABASE_FILE), options)?;
        let secrets = SecretStore::open(data_dir.join(SECRETS_FILE))?;
        Ok(Opened { store, secrets })
    };
    match tokio::task::spawn_blocking(opening).await {
        Ok(opened) => opened,
        Err(error) => Err(StartError::Internal(error.to_string())),
    }
}

/// Makes the data directory, if it is missing, for its owner alone: payloads and the signing secret
/// lie in it. One that is there keeps its mode.
fn make_private(data_dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(data_dir)
}

fn registry(
    config: &Config,
    runtime: &Runtime,
    secrets: &Arc<SecretStore>,
) -> Result<Registry, StartError> {
    let client = WebhookClient::new(
        Arc::clone(&config.lookup),
        Arc::clone(secrets),
        runtime.clone(),
        config.allow_private_targets,
    )
    .map_err(|error| StartError::Client(Box::new(error)))?;
    let webhook = Registration::detached(WebhookHandler::new(client))
        .concurrency(config.deliveries_max)
        .codec_version(1);
    let expiry = Registration::inline(IdempotencyExpiry).group_max(EXPIRY_GROUP_MAX);
    Registry::new()
        .with(WEBHOOK, webhook)
        .and_then(|registry| registry.with(IDEMPOTENCY_EXPIRY, expiry))
        .map_err(|error| StartError::Internal(error.to_string()))
}

async fn serve(listener: BoundedListener, service: Service, mut stopped: watch::Receiver<bool>) {
    let stopped = async move {
        // An error means that the server was dropped, which is a stop too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let served = axum::serve(listener, router(service)).with_graceful_shutdown(stopped);
    if let Err(error) = served.await {
        tracing::error!(%error, "the listener failed");
    }
}

impl RunningServer {
    /// The address it listens on, with the port the system chose if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where everything is kept.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What an acknowledged timer survives.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The secrets that sign deliveries, to be shown to receivers or rotated.
    pub fn secrets(&self) -> &SecretStore {
        &self.secrets
    }

    /// The driver under the server: its status, pause and drain.
    pub fn driver(&self) -> &Handle {
        &self.driver
    }

    /// Stops: takes no further connection and begins no further delivery, gives what is under way
    /// the grace period to end, releases the rest, and closes the store.
    pub async fn shutdown(mut self) -> ShutdownReport {
        let _ = self.stop.send(true);
        let drain = async {
            tokio::select! {
                _ = self.http.join_next() => true,
                () = self.runtime.sleep(self.grace) => {
                    self.http.abort_all();
                    false
                }
            }
        };
        let (requests_finished, driver) = tokio::join!(drain, self.driver.shutdown(self.grace));
        let store = self.store.clone();
        // Waits for the last commits; a failure of the thread leaves what a crash would.
        if let Err(error) = tokio::task::spawn_blocking(move || store.close()).await {
            tracing::error!(%error, "closing the store failed");
        }
        tracing::info!(
            requests_finished,
            deliveries_finished = driver.finished,
            deliveries_released = driver.released,
            "stopped"
        );
        ShutdownReport {
            requests_finished,
            deliveries_finished: driver.finished,
            deliveries_released: driver.released,
        }
    }
}

//! What pending timers cost a server: time to start and resident memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dueline::store::{NamespaceStore, Partition};
use dueline::timers::{Policy, Timer, TimerKind, Timers};
use dueline_sqlite::{Options, SqliteStore};

use crate::memory;

/// The kind of the server's webhooks.
const WEBHOOK: TimerKind = TimerKind(16);
const HOUR_MS: u64 = 3_600_000;
/// Partitions filled at a time, so that their commits are shared.
const AT_ONCE: u64 = 256;

pub(crate) fn run(
    timers: u64,
    partitions: u64,
    watch_s: u64,
    server: Option<PathBuf>,
) -> Result<(), Box<dyn std::error::Error>> {
    let server = match server {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name("dueline"),
    };
    if !server.exists() {
        return Err(format!("{} is missing: cargo build --release", server.display()).into());
    }
    let folder = tempfile::tempdir_in(".")?;
    let each = timers.div_ceil(partitions.max(1));
    let filling = Instant::now();
    fill(&folder.path().join("dueline.db"), each, partitions)?;
    println!(
        "{} timers pending in {partitions} partitions, written in {:.1} s, file {} MiB",
        each * partitions,
        filling.elapsed().as_secs_f64(),
        std::fs::metadata(folder.path().join("dueline.db"))?.len() >> 20,
    );

    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let started = Instant::now();
    let mut running = Running(
        Command::new(&server)
            .args(["serve", "--data"])
            .arg(folder.path())
            .args(["--listen", &address.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?,
    );
    let server_id = running.0.id().to_string();
    while !is_ready(address) {
        if let Some(status) = running.0.try_wait()? {
            return Err(format!("the server stopped: {status}").into());
        }
        if started.elapsed() > Duration::from_secs(60) {
            return Err("the server was not ready within 60 s".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    println!(
        "ready after {:.3} s, resident {} MiB",
        started.elapsed().as_secs_f64(),
        memory::mib(&server_id, "VmRSS")?
    );
    std::thread::sleep(Duration::from_secs(watch_s));
    println!(
        "after {watch_s} s resident {} MiB, at most {} MiB",
        memory::mib(&server_id, "VmRSS")?,
        memory::mib(&server_id, "VmHWM")?
    );
    Ok(())
}

/// Stops the server when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn fill(path: &Path, each: u64, partitions: u64) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = dueline_tokio::system_runtime()?;
    let store = SqliteStore::open(path, Options::new(Arc::clone(runtime.clock())))?;
    let shared: Arc<dyn NamespaceStore> = Arc::new(store.clone());
    let timers = Timers::new(shared, runtime.clone());
    let now_ms = runtime.now_ms();
    let workers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    for first in (0..partitions).step_by(usize::try_from(AT_ONCE)?) {
        let mut tasks = tokio::task::JoinSet::new();
        for number in first..partitions.min(first + AT_ONCE) {
            let timers = timers.clone();
            let spread = runtime.random_u64();
            tasks.spawn_on(
                async move {
                    let partition = Partition::new(format!("tenant-{number}"))?;
                    let batch = (0..each).map(|timer| {
                        let due_in_ms = spread.rotate_left(u32::try_from(timer % 64).unwrap_or(0))
                            % (24 * 30 * HOUR_MS);
                        let timer = Timer::new(WEBHOOK, format!("reminder-{timer}"))
                            .due_at(now_ms + HOUR_MS + due_in_ms)
                            .payload(vec![b'x'; 100])
                            .named();
                        (timer, Policy::Replace)
                    });
                    for done in timers.schedule_many(&partition, batch.collect()).await {
                        done?;
                    }
                    Ok::<(), dueline::timers::TimerError>(())
                },
                workers.handle(),
            );
        }
        workers.block_on(async {
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        })?;
    }
    drop(timers);
    store.close();
    Ok(())
}

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = TcpStream::connect(address) else {
        return false;
    };
    let asked = connection.write_all(
        format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes(),
    );
    let mut answer = String::new();
    asked.is_ok()
        && connection.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

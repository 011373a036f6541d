//! `dueline serve`: runs a server until a signal stops it.

mod log;
mod signals;

use std::process::ExitCode;

use dueline_server::{Config, Durability, RunningServer, Server};

use crate::arguments::{DurabilityArgument, LogFormat, Serve};
use crate::failure::Failure;
use signals::Signals;

pub(crate) fn run(serve: &Serve) -> Result<ExitCode, Failure> {
    log::set_up(serve.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let result = runtime.block_on(serve_until_stopped(serve));
    // What still runs was told to stop and had its time; the end of the process is the end of it.
    runtime.shutdown_background();
    result
}

async fn serve_until_stopped(serve: &Serve) -> Result<ExitCode, Failure> {
    // Before the start, so that a signal during it is not missed.
    let mut signals = Signals::new().map_err(Failure::Runtime)?;
    let config = Config::new(&serve.data)
        .listen(serve.listen)
        .durability(durability(serve.durability))
        .allow_private_targets(serve.allow_private_targets)
        .grace(serve.grace);
    let server = tokio::select! {
        started = Server::start(config) => started.map_err(Failure::Serve)?,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    announce(&server, serve.log_format)?;
    let signal = signals.next().await;
    tracing::info!(signal, "stopping; a second signal stops at once");
    tokio::select! {
        _ = server.shutdown() => {}
        signal = signals.next() => tracing::warn!(signal, "stopped at once; nothing is lost"),
    }
    Ok(ExitCode::SUCCESS)
}

fn announce(server: &RunningServer, format: LogFormat) -> Result<(), Failure> {
    let (address, data) = (server.address(), server.data_dir().display());
    let durability = server.durability();
    if format == LogFormat::Json {
        tracing::info!(%address, %data, %durability, "listening");
        return Ok(());
    }
    let version = env!("CARGO_PKG_VERSION");
    log::write_line(&format!(
        "dueline {version} listens on http://{address}, data in {data}, durability {durability}"
    ))
}

fn durability(argument: DurabilityArgument) -> Durability {
    match argument {
        DurabilityArgument::PowerLoss => Durability::PowerLoss,
        DurabilityArgument::ProcessCrash => Durability::ProcessCrash,
    }
}

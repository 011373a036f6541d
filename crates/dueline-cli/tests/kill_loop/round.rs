//! One directory: clients, kills, rest, and the verdict.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dueline_history::{Event, Figures, Log, What, check, read};
use dueline_testkit::model::Random;

use super::client::{Client, Shared};
use super::plan::{Kill, kills};
use super::rest;
use super::support::now_ms;
use super::support::receiver::Receiver;
use super::support::server::{Server, start_and_kill};

const CLIENTS: u64 = 8;
/// Every so many webhooks one is refused, so that timers are retried too.
const REFUSE_EVERY: usize = 9;
pub(crate) const DEADLINE_MS: u64 = 1_000;
/// How much later than it happened a call may be seen: the machine may be busy with other tests.
const LAG_MS: u64 = 2_000;
pub(crate) const FLAGS: [&str; 2] = ["--durability", "power-loss"];

/// Plays a seed; panics with every promise that was broken, and leaves the directory then.
pub(crate) fn play(seed: u64, kill_count: u64) -> Figures {
    let folder = tempfile::tempdir().expect("a folder");
    let history = folder.path().join("history.jsonl");
    let log = Arc::new(Log::create(&history).expect("a new history"));
    let record = |what| {
        let event = Event {
            at_ms: now_ms(),
            actor: "supervisor".into(),
            what,
        };
        log.append(&event).expect("the history can be written");
    };
    record(What::Begin {
        seed,
        deadline_ms: DEADLINE_MS,
        lag_ms: LAG_MS,
        rules: None,
    });
    let receiver = Receiver::start();
    receiver.refuse_every(REFUSE_EVERY);
    let shared = Arc::new(Shared::new(Arc::clone(&log), receiver.url.clone()));
    let mut random = Random::new(seed);
    let kills = kills(&mut random, kill_count);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = Client::new(number, random.next_u64(), Arc::clone(&shared));
            thread::spawn(move || client.run())
        })
        .collect();
    let data = folder.path().join("data");
    for kill in kills {
        match kill {
            Kill::InStartUp(after) => {
                start_and_kill(&data, &FLAGS, after);
                record(What::Killed);
            }
            Kill::AfterReady(after) => {
                let server = Server::start_with(&data, &FLAGS);
                record(What::Ready);
                shared.is_up(&server.address);
                let_pass(after);
                record(What::Killed);
                server.kill();
                shared.is_down();
            }
        }
    }
    let server = Server::start_with(&data, &FLAGS);
    record(What::Ready);
    shared.is_up(&server.address);
    shared.stop();
    for client in clients {
        client.join().expect("a client does not panic");
    }
    let quiet = rest::come_to(server, &data, &history);
    rest::record_calls(&log, &receiver);
    record(quiet);
    judge(seed, folder, &history)
}

fn judge(seed: u64, folder: tempfile::TempDir, history: &std::path::Path) -> Figures {
    let verdict = check(&read(history).expect("a whole history"));
    if !verdict.broken.is_empty() {
        let kept = folder.keep();
        let lines: Vec<String> = verdict.broken.iter().map(ToString::to_string).collect();
        panic!(
            "seed {seed}, kept in {}:\n{}",
            kept.display(),
            lines.join("\n")
        );
    }
    // A history in which nothing happens proves nothing.
    let figures = verdict.figures;
    let each = [
        figures.schedules,
        figures.cancels,
        figures.lists,
        figures.unknown,
        figures.calls,
    ];
    assert!(each.iter().all(|count| *count > 0), "{figures:?}");
    figures
}

#[allow(
    clippy::disallowed_methods,
    reason = "the moment of the kill is meant to be any"
)]
fn let_pass(span: Duration) {
    thread::sleep(span);
}

//! A client that asks for timers of its own, records what it is told, and sends a request again when
//! its answer was lost, or gives it up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use dueline_history::{Answered, Event, ListedTimer, Log, Operation, What};
use dueline_testkit::model::Random;
use serde_json::Value;

use super::round::DEADLINE_MS;
use super::support::http::{Message, send};
use super::support::{now_ms, wait_for};

/// Where the timers lie; clients share them.
pub(crate) const PARTITIONS: [&str; 3] = ["red", "green", "blue"];
/// Small, so that lists have several pages.
const PAGE_SIZE: usize = 20;
/// Requests and versions of one client begin at its number times this.
const NUMBERS_PER_CLIENT: u64 = 1_000_000;
const GIVES_UP_PERCENT: u64 = 10;

/// What all clients know.
#[derive(Debug)]
pub(crate) struct Shared {
    log: Arc<Log>,
    receiver_url: String,
    address: RwLock<Option<String>>,
    stopped: AtomicBool,
}

impl Shared {
    pub(crate) fn new(log: Arc<Log>, receiver_url: String) -> Self {
        Self {
            log,
            receiver_url,
            address: RwLock::new(None),
            stopped: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_up(&self, address: &str) {
        *self.address.write().expect("nobody panicked") = Some(address.to_owned());
    }

    pub(crate) fn is_down(&self) {
        *self.address.write().expect("nobody panicked") = None;
    }

    /// Lets every client end behind the request that it is at.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn address(&self) -> String {
        wait_for("a server", || {
            self.address.read().expect("nobody panicked").clone()
        })
    }
}

pub(crate) struct Client {
    number: u64,
    random: Random,
    shared: Arc<Shared>,
    requests: u64,
    versions: u64,
    /// Ids that were scheduled and whose last request has ended.
    timers: Vec<String>,
    last_due_ms: u64,
}

impl Client {
    pub(crate) fn new(number: u64, seed: u64, shared: Arc<Shared>) -> Self {
        Self {
            number,
            random: Random::new(seed),
            shared,
            requests: 0,
            versions: 0,
            timers: Vec::new(),
            last_due_ms: now_ms(),
        }
    }

    pub(crate) fn run(mut self) {
        while !self.shared.is_stopped() {
            let operation = self.draw();
            self.carry_out(&operation);
            pause(Duration::from_millis(2 + self.random.below(15)));
        }
    }

    fn draw(&mut self) -> Operation {
        match self.random.below(100) {
            0..50 => {
                let timer = format!("c{}-{}", self.number, self.versions);
                self.schedule(timer)
            }
            50..65 => match self.recent() {
                Some(timer) => self.schedule(timer),
                None => self.list(),
            },
            65..88 => match self.recent() {
                Some(timer) => Operation::Cancel {
                    timer,
                    force: self.random.chance(50),
                },
                None => self.list(),
            },
            _ => self.list(),
        }
    }

    fn schedule(&mut self, timer: String) -> Operation {
        self.versions += 1;
        let now_ms = now_ms();
        self.last_due_ms = match self.random.below(100) {
            0..15 => now_ms - self.random.below(10_000),
            15..25 => now_ms,
            25..65 => now_ms + self.random.below(1_000),
            65..95 => now_ms + 1_000 + self.random.below(5_000),
            _ => self.last_due_ms,
        };
        Operation::Schedule {
            timer,
            version: self.number * NUMBERS_PER_CLIENT + self.versions,
            due_ms: self.last_due_ms,
        }
    }

    fn list(&self) -> Operation {
        Operation::List {
            prefix: format!("c{}-", self.number),
        }
    }

    /// One of the timers that were scheduled last.
    fn recent(&mut self) -> Option<String> {
        let newest = self.timers.len().min(30) as u64;
        let back = usize::try_from(self.random.below(newest)).expect("a place");
        self.timers.iter().rev().nth(back).cloned()
    }

    /// Sends a request until it is answered, or gives it up: its timer is not touched again then.
    fn carry_out(&mut self, operation: &Operation) {
        self.requests += 1;
        let request = self.number * NUMBERS_PER_CLIENT + self.requests;
        let timer = match operation {
            Operation::Schedule { timer, .. } | Operation::Cancel { timer, .. } => {
                self.timers.retain(|known| known != timer);
                Some(timer.clone())
            }
            Operation::List { .. } => None,
        };
        loop {
            let address = self.shared.address();
            self.record(What::Invoke {
                request,
                operation: operation.clone(),
            });
            let answered = self.send(&address, request, operation);
            let is_lost = answered == Answered::Unknown;
            self.record(What::Answer { request, answered });
            if !is_lost {
                break;
            }
            if self.random.chance(GIVES_UP_PERCENT) {
                return;
            }
            pause(Duration::from_millis(5));
        }
        self.timers.extend(timer);
    }

    fn send(&self, address: &str, request: u64, operation: &Operation) -> Answered {
        match operation {
            Operation::Schedule {
                timer,
                version,
                due_ms,
            } => {
                let body = serde_json::json!({
                    "due_at": text_of(*due_ms),
                    "payload": {"version": version},
                    "target": {"url": self.shared.receiver_url},
                    "deadline": format!("{DEADLINE_MS}ms"),
                    "retry": {"attempts_max": 10_000, "initial": "50ms", "max": "200ms"},
                });
                let key = format!("\"request-{request}\"");
                let headers = [("idempotency-key", key.as_str())];
                let path = path_of(timer);
                let answer = send(address, "PUT", &path, &headers, &body.to_string());
                told(answer.as_ref().ok(), |status, code| match (status, code) {
                    (201, _) => Some(Answered::Created),
                    (200, _) => Some(Answered::Replaced),
                    (409, "idempotency_key_in_flight" | "contended") => Some(Answered::Unknown),
                    _ => None,
                })
            }
            Operation::Cancel { timer, force } => {
                let path = format!("{}?force={force}", path_of(timer));
                let answer = send(address, "DELETE", &path, &[], "");
                told(answer.as_ref().ok(), |status, code| match (status, code) {
                    (204, _) => Some(Answered::Cancelled),
                    (404, "timer_not_found") => Some(Answered::NotFound),
                    (409, "timer_in_delivery") => Some(Answered::InDelivery),
                    (409, "contended") => Some(Answered::Unknown),
                    _ => None,
                })
            }
            Operation::List { prefix } => list(address, prefix),
        }
    }

    fn record(&self, what: What) {
        let event = Event {
            at_ms: now_ms(),
            actor: format!("client-{}", self.number).into(),
            what,
        };
        let written = self.shared.log.append(&event);
        written.expect("the history can be written");
    }
}

/// What an answer says. None, a cut one, and one that asks to come again leave the request in doubt.
fn told(answer: Option<&Message>, read: impl Fn(u16, &str) -> Option<Answered>) -> Answered {
    let Some((status, body)) = answer.and_then(whole) else {
        return Answered::Unknown;
    };
    let code = body["code"].as_str().unwrap_or_default();
    if status == 503 {
        return Answered::Unknown;
    }
    read(status, code).unwrap_or_else(|| Answered::Wrong(format!("{status} {body}")))
}

/// Status and body of an answer that was not cut by a kill.
fn whole(answer: &Message) -> Option<(u16, Value)> {
    let status = answer.first_line.split(' ').nth(1)?;
    if status.len() != 3 {
        return None;
    }
    let body = if answer.body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&answer.body).ok()?
    };
    Some((status.parse().ok()?, body))
}

/// Lists all pages of all partitions.
fn list(address: &str, prefix: &str) -> Answered {
    let mut listed = Vec::new();
    for partition in PARTITIONS {
        let first =
            format!("/v1/partitions/{partition}/timers?prefix={prefix}&page_size={PAGE_SIZE}");
        let mut path = first.clone();
        loop {
            let answer = send(address, "GET", &path, &[], "").ok();
            let page = match answer.as_ref().and_then(whole) {
                Some((200, page)) if page["timers"].is_array() => page,
                None | Some((503 | 200, _)) => return Answered::Unknown,
                Some((status, body)) => return Answered::Wrong(format!("{status} {body}")),
            };
            for timer in page["timers"].as_array().into_iter().flatten() {
                listed.push(ListedTimer {
                    timer: timer["id"].as_str().expect("an id").to_owned(),
                    version: timer["payload"]["version"].as_u64().expect("a version"),
                    due_ms: ms_of(timer["due_at"].as_str().expect("a due")),
                });
            }
            match page["next_page_token"].as_str() {
                Some(token) => path = format!("{first}&page_token={token}"),
                None => break,
            }
        }
    }
    Answered::Listed(listed)
}

/// The path of a timer; its partition follows from its id.
fn path_of(timer: &str) -> String {
    let sum: usize = timer.bytes().map(usize::from).sum();
    let partition = PARTITIONS[sum % PARTITIONS.len()];
    format!("/v1/partitions/{partition}/timers/{timer}")
}

fn text_of(at_ms: u64) -> String {
    let at_ms = i64::try_from(at_ms).expect("a time");
    let at = jiff::Timestamp::from_millisecond(at_ms).expect("a time");
    format!("{at:.3}")
}

/// A time of an answer, in milliseconds since 1970.
pub(crate) fn ms_of(text: &str) -> u64 {
    let time: jiff::Timestamp = text.parse().expect("a time");
    u64::try_from(time.as_millisecond()).expect("a time after 1970")
}

#[allow(
    clippy::disallowed_methods,
    reason = "how fast a client asks is no matter of correctness"
)]
fn pause(span: Duration) {
    thread::sleep(span);
}

//! A receiver of webhooks that keeps what it saw.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::http::Message;
use super::{now_ms, wait_for};

/// A webhook as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) arrived_ms: u64,
    pub(crate) message: Message,
    /// What it was answered; 0 for no answer.
    pub(crate) status: u16,
}

impl Delivery {
    pub(crate) fn webhook_id(&self) -> String {
        self.message
            .header("webhook-id")
            .expect("a webhook has an id")
            .to_owned()
    }

    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.message.body).expect("a webhook holds JSON")
    }

    /// The id of the timer it is about.
    pub(crate) fn timer_id(&self) -> String {
        self.body()["data"]["id"]
            .as_str()
            .expect("a webhook names its timer")
            .to_owned()
    }

    /// Which attempt it says it is.
    pub(crate) fn attempt(&self) -> u64 {
        self.body()["data"]["attempt"]
            .as_u64()
            .expect("a webhook counts its attempts")
    }

    /// Whether the signature is the one that this data directory's secret makes, computed here as the
    /// Standard Webhooks specification says.
    pub(crate) fn is_signed_by(&self, data: &Path) -> bool {
        let file = std::fs::read(data.join("webhook-secrets.json")).expect("the secrets");
        let file: Value = serde_json::from_slice(&file).expect("the secrets are JSON");
        let secret = file["secrets"][0]["secret"].as_str().expect("a secret");
        let key = STANDARD
            .decode(secret.strip_prefix("whsec_").expect("its prefix"))
            .expect("a key");
        let timestamp = self
            .message
            .header("webhook-timestamp")
            .expect("a timestamp");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
        mac.update(format!("{}.{timestamp}.", self.webhook_id()).as_bytes());
        mac.update(&self.message.body);
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.message.header("webhook-signature") == Some(&expected)
    }
}

/// Listens on this machine and answers every webhook.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    deliveries: Mutex<Vec<Delivery>>,
    status: AtomicU16,
    silent: AtomicBool,
    refuse_every: AtomicUsize,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared {
            deliveries: Mutex::new(Vec::new()),
            status: AtomicU16::new(200),
            silent: AtomicBool::new(false),
            refuse_every: AtomicUsize::new(usize::MAX),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Self { url, shared }
    }

    /// What every later webhook is answered.
    pub(crate) fn answer(&self, status: u16) {
        self.shared.status.store(status, Ordering::SeqCst);
    }

    /// Whether later webhooks get no answer at all.
    pub(crate) fn keep_silent(&self, silent: bool) {
        self.shared.silent.store(silent, Ordering::SeqCst);
    }

    /// Answers 503 to every n-th webhook.
    pub(crate) fn refuse_every(&self, nth: usize) {
        self.shared.refuse_every.store(nth, Ordering::SeqCst);
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.shared
            .deliveries
            .lock()
            .expect("nobody panicked")
            .clone()
    }

    /// Waits until this many webhooks have arrived, repeats included.
    pub(crate) fn wait_for_deliveries(&self, count: usize) -> Vec<Delivery> {
        wait_for("webhooks", || {
            Some(self.deliveries()).filter(|found| found.len() >= count)
        })
    }
}

impl Shared {
    /// Answers until the server closes the connection, or is killed.
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        while let Ok(Some(message)) = Message::read(&mut reader) {
            let arrived_ms = now_ms();
            let status = self.keep(arrived_ms, message);
            if status == 0 {
                continue;
            }
            let answer = format!("HTTP/1.1 {status} Answer\r\ncontent-length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// Keeps a webhook, and says what it is answered.
    fn keep(&self, arrived_ms: u64, message: Message) -> u16 {
        let mut deliveries = self.deliveries.lock().expect("nobody panicked");
        let nth = deliveries.len() + 1;
        let status = if self.silent.load(Ordering::SeqCst) {
            0
        } else if nth.is_multiple_of(self.refuse_every.load(Ordering::SeqCst)) {
            503
        } else {
            self.status.load(Ordering::SeqCst)
        };
        deliveries.push(Delivery {
            arrived_ms,
            message,
            status,
        });
        status
    }
}

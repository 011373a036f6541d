//! A server on a socket of its own, a receiver of webhooks beside it, and a client.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "not every test uses every helper"
)]

mod receiver;

use std::sync::Arc;
use std::time::Duration;

use dueline_server::{Config, Durability, Lookup, RunningServer, Server};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use receiver::{Delivery, Receiver, Reply};

/// Far enough away to stay pending for as long as a test runs.
pub const LATER: &str = "2099-01-01T00:00:00Z";

/// A target that is allowed and never called: its timers stay pending.
pub const TARGET: &str = "https://example.com/hook";

/// A running server and a client of it.
pub struct Harness {
    pub server: RunningServer,
    pub client: reqwest::Client,
    pub base: String,
    pub folder: Arc<TempDir>,
}

/// An answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        match self.headers.get(name) {
            Some(value) => value.to_str().unwrap(),
            None => panic!("no header {name} in {self:?}"),
        }
    }

    /// Asserts that this is a problem of this status and code, in the form of RFC 9457.
    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["type"], format!("urn:dueline:problem:{code}"));
        for field in ["title", "detail"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{problem}"
            );
        }
        problem
    }

    /// The pointers of a 422.
    #[track_caller]
    pub fn pointers(&self) -> Vec<String> {
        let problem = self.assert_problem(422, "invalid_request");
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        errors
            .iter()
            .map(|error| {
                assert!(
                    error["detail"]
                        .as_str()
                        .is_some_and(|text| !text.is_empty())
                );
                error["pointer"].as_str().unwrap().to_owned()
            })
            .collect()
    }
}

/// A configuration for tests: a free port, private targets allowed, no sync of the disk.
pub fn config(folder: &TempDir) -> Config {
    Config::new(folder.path().join("data"))
        .listen(([127, 0, 0, 1], 0).into())
        .durability(Durability::ProcessCrash)
        .allow_private_targets(true)
        .grace(Duration::from_secs(5))
}

impl Harness {
    /// A server that may deliver to this machine.
    pub async fn start() -> Self {
        Self::with(|config| config).await
    }

    /// A server as a product runs it: private targets refused, names resolved by this.
    pub async fn guarded(lookup: Arc<dyn Lookup>) -> Self {
        Self::with(|config| config.allow_private_targets(false).lookup(lookup)).await
    }

    pub async fn with(configure: impl FnOnce(Config) -> Config) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::over(folder, configure).await
    }

    /// A server over an existing folder.
    pub async fn over(folder: Arc<TempDir>, configure: impl FnOnce(Config) -> Config) -> Self {
        let server = Server::start(configure(config(&folder))).await.unwrap();
        // No connection is kept: the server closes a quiet one, and a test may move the clock.
        let client = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        Self {
            base: format!("http://{}", server.address()),
            server,
            client,
            folder,
        }
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub async fn call(&self, method: &str, path: &str) -> Answer {
        self.send(self.request(method, path)).await
    }

    pub async fn call_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(self.request(method, path).json(body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call_json("PUT", path, body).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call_json("POST", path, body).await
    }

    /// Waits until a timer is gone.
    pub async fn until_gone(&self, path: &str) {
        self.until(path, |answer| answer.status == 404).await;
    }

    /// Waits until a path answers as wanted. Each turn is a request, so time passes; the number of
    /// turns bounds the wait.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        for _ in 0..20_000 {
            let answer = self.get(path).await;
            if wanted(&answer) {
                return answer;
            }
        }
        panic!("{path} never answered as wanted");
    }

    /// Sends bytes as they are, for requests that no client would send.
    pub async fn raw(&self, request: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut socket = tokio::net::TcpStream::connect(self.server.address())
            .await
            .unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// A timer that stays pending.
pub fn pending() -> Value {
    json!({ "due_at": LATER, "payload": {"order": 42}, "target": {"url": TARGET} })
}

/// A timer that is due at once and goes to this URL.
pub fn due(url: &str) -> Value {
    json!({ "due_at": "2020-01-01T00:00:00Z", "payload": {"order": 42}, "target": {"url": url} })
}

/// A timer that is due at once and is tried again within milliseconds.
pub fn due_quickly_retried(url: &str) -> Value {
    let mut timer = due(url);
    timer["retry"] = json!({ "attempts_max": 20, "initial": "5ms", "max": "20ms" });
    timer
}

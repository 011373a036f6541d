use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// A request that the receiver got.
#[derive(Debug)]
pub struct Delivery {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Delivery {
    pub fn header(&self, name: &str) -> &str {
        match self.headers.get(name) {
            Some(value) => value.to_str().unwrap(),
            None => panic!("no header {name} in {self:?}"),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What the receiver answers.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// Whether the answer waits until [`Receiver::open`] is called.
    pub held: bool,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    deliveries: mpsc::Sender<Delivery>,
    gate: Semaphore,
}

/// A receiver of webhooks on loopback. It answers as scripted, then 204.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    deliveries: mpsc::Receiver<Delivery>,
    _tasks: JoinSet<()>,
}

impl Receiver {
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, deliveries) = mpsc::channel(4_096);
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into_iter().collect()),
            deliveries: sender,
            gate: Semaphore::new(0),
        });
        let router = Router::new()
            .fallback(receive)
            .with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            shared,
            deliveries,
            _tasks: tasks,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The next delivery. The wait is bounded by the test runner alone, and by 30 s here.
    pub async fn next(&mut self) -> Delivery {
        let runtime = dueline_tokio::system_runtime().unwrap();
        tokio::select! {
            delivery = self.deliveries.recv() => delivery.unwrap(),
            () = runtime.sleep(Duration::from_secs(30)) => panic!("nothing was delivered"),
        }
    }

    /// Whether nothing has arrived.
    pub fn is_silent(&mut self) -> bool {
        self.deliveries.try_recv().is_err()
    }

    /// Lets a held answer go.
    pub fn open(&self) {
        self.shared.gate.add_permits(1);
    }
}

async fn receive(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 2 * 1_024 * 1_024).await.unwrap();
    let delivery = Delivery {
        path: parts.uri.to_string(),
        headers: parts.headers,
        body,
    };
    let reply = shared.replies.lock().unwrap().pop_front();
    shared.deliveries.send(delivery).await.unwrap();
    let reply = reply.unwrap_or_else(|| Reply::status(204));
    if reply.held {
        shared.gate.acquire().await.unwrap().forget();
    }
    let mut response = (StatusCode::from_u16(reply.status).unwrap(), reply.body).into_response();
    for (name, value) in reply.headers {
        let value = HeaderValue::from_str(&value).unwrap();
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
    response
}

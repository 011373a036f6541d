//! Speaks HTTP with a dueline server. Commands see paths, documents and [`Failure`]s, never a library's types.

mod path;
mod request;

use std::error::Error;
use std::time::Duration;

pub(crate) use path::Path;
pub(crate) use request::Request;

use crate::arguments::ServerArgument;
use crate::document::Document;
use crate::failure::{Failure, Problem};

/// How long the server may take for one request.
const TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of a foreign answer is shown.
const EXCERPT_CHARS_MAX: usize = 200;

/// A connection to one server.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    server: String,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// Prepares to talk to the server; nothing is sent yet.
    pub(crate) fn new(argument: &ServerArgument) -> Result<Self, Failure> {
        let server = argument.server.trim_end_matches('/').to_owned();
        let encrypted = check_address(&server)?;
        // An error says that one is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("dueline/", env!("CARGO_PKG_VERSION")));
        if !encrypted {
            // Without this a machine without root certificates could not speak plain HTTP either.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| Failure::Encryption {
            url: server.clone(),
            reason: innermost(&error),
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::Runtime)?;
        Ok(Self {
            http,
            server,
            runtime,
        })
    }

    /// Sends the request and returns the document of the answer; `null` if it has none.
    pub(crate) fn send(&self, request: &Request) -> Result<Document, Failure> {
        self.runtime.block_on(self.exchange(request))
    }

    async fn exchange(&self, request: &Request) -> Result<Document, Failure> {
        let answer = request
            .build(&self.http, &self.server)
            .send()
            .await
            .map_err(|error| self.network_failure(&error))?;
        let status = answer.status();
        let bytes = answer
            .bytes()
            .await
            .map_err(|error| self.network_failure(&error))?;
        let text = if bytes.is_empty() && status.is_success() {
            "null".into()
        } else {
            String::from_utf8_lossy(&bytes)
        };
        match Document::parse(&text) {
            Ok(document) if status.is_success() => Ok(document),
            Ok(document) if document.fields().get("title").is_some() => {
                Err(Failure::Refused(Box::new(Problem {
                    status: status.as_u16(),
                    document,
                })))
            }
            _ => Err(Failure::NotDueline {
                url: self.server.clone(),
                status: status.as_u16(),
                excerpt: excerpt(&text),
            }),
        }
    }

    fn network_failure(&self, error: &reqwest::Error) -> Failure {
        let url = self.server.clone();
        if error.is_builder() {
            Failure::ServerAddress {
                url,
                reason: innermost(error),
            }
        } else if error.is_connect() {
            Failure::NoServer {
                url,
                reason: innermost(error),
            }
        } else if error.is_timeout() {
            Failure::TimedOut {
                url,
                seconds: TIMEOUT.as_secs(),
            }
        } else {
            Failure::Broken {
                url,
                reason: innermost(error),
            }
        }
    }
}

/// Whether the address asks for encryption.
fn check_address(server: &str) -> Result<bool, Failure> {
    let wrong = |reason: &str| {
        Err(Failure::ServerAddress {
            url: server.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let Ok(url) = reqwest::Url::parse(server) else {
        return wrong("it is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("it must begin with http:// or https://");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("it must end before `?` and `#`");
    }
    Ok(url.scheme() == "https")
}

/// The cause at the bottom: what a person can act on ("Connection refused").
fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

fn excerpt(text: &str) -> String {
    let visible: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(EXCERPT_CHARS_MAX)
        .collect();
    if visible.is_empty() {
        "(nothing)".to_owned()
    } else {
        visible
    }
}

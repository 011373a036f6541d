use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use dueline::runtime::Runtime;
use dueline::timers::HandlerError;
use dueline::{BoxFuture, Bytes};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use url::Url;

use super::handler::Carrier;
use super::record::Target;
use super::retry_after::retry_after_ms;
use super::secrets::SecretStore;
use super::signature::sign;
use crate::guard::{GuardedResolver, Lookup, check_target_url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most of an answer's body that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// How long the body of a refusal is waited for. The status has decided already.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// How much of an answer's text is kept with a failed timer, in characters.
const EXCERPT_CHARS_MAX: usize = 160;

/// One request to a target, to be signed.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(super) target: &'a Target,
    pub(super) message_id: &'a str,
    pub(super) now_ms: u64,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
}

/// What a target answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(super) status: StatusCode,
    pub(super) retry_after_ms: Option<u64>,
    /// The beginning of the text, on one line; empty for a success.
    pub(super) excerpt: String,
}

/// Sends webhooks: no redirects, no proxies, checked addresses only.
#[derive(Clone, Debug)]
pub(crate) struct WebhookClient {
    client: reqwest::Client,
    secrets: Arc<SecretStore>,
    runtime: Runtime,
    allow_private: bool,
}

impl WebhookClient {
    pub(crate) fn new(
        lookup: Arc<dyn Lookup>,
        secrets: Arc<SecretStore>,
        runtime: Runtime,
        allow_private: bool,
    ) -> Result<Self, reqwest::Error> {
        // Fails only if the process has chosen a provider already, and then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("dueline/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .dns_resolver(Arc::new(GuardedResolver::new(lookup, allow_private)))
            .build()?;
        Ok(Self {
            client,
            secrets,
            runtime,
            allow_private,
        })
    }

    /// Sends one request; without an answer a sentence: the target is refused, could not be reached,
    /// or broke off.
    async fn request(&self, outgoing: Outgoing<'_>) -> Result<Answer, HandlerError> {
        let keys = self.secrets.signing_keys(outgoing.now_ms);
        let (url, headers) = addressed(&outgoing, &keys, self.allow_private)?;
        let request = self.client.post(url).headers(headers).body(outgoing.body);
        let answer = request
            .send()
            .await
            .map_err(|error| network_error(&error))?;
        let status = answer.status();
        let retry_after_ms = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| retry_after_ms(text, self.runtime.now_ms()));
        // The status of a success is all there is to know. Its body is not waited for: one that never
        // ends would turn a delivery into a failure, and into a second delivery.
        let excerpt = if status.is_success() {
            String::new()
        } else {
            excerpt(&self.read_answer(answer).await)
        };
        Ok(Answer {
            status,
            retry_after_ms,
            excerpt,
        })
    }

    /// Reads the beginning of a body. Whatever fails here does not change what the status said.
    async fn read_answer(&self, mut answer: reqwest::Response) -> Vec<u8> {
        let mut text = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = answer.chunk().await {
                let room = ANSWER_BYTES_MAX.saturating_sub(text.len());
                text.extend(chunk.iter().take(room));
                if chunk.len() > room {
                    break;
                }
            }
        };
        tokio::select! {
            () = read => {}
            () = self.runtime.sleep(ANSWER_TIMEOUT) => {}
        }
        text
    }
}

impl Carrier for WebhookClient {
    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, HandlerError>> {
        Box::pin(self.request(outgoing))
    }
}

/// Where a request goes, and its headers with a signature for each of these keys.
///
/// # Errors
/// A sentence: the target is refused, or a header of it is not sound.
pub(super) fn addressed(
    outgoing: &Outgoing<'_>,
    keys: &[Vec<u8>],
    allow_private: bool,
) -> Result<(Url, HeaderMap), HandlerError> {
    let url = check_target_url(&outgoing.target.url, allow_private)
        .map_err(|error| HandlerError::new(format!("refused: {error}")))?;
    let headers = headers(outgoing, keys).map_err(HandlerError::new)?;
    Ok((url, headers))
}

fn headers(outgoing: &Outgoing<'_>, keys: &[Vec<u8>]) -> Result<HeaderMap, String> {
    let timestamp_s = outgoing.now_ms / 1_000;
    let signatures: Vec<String> = keys
        .iter()
        .filter_map(|key| sign(key, outgoing.message_id, timestamp_s, &outgoing.body))
        .collect();
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(outgoing.content_type),
    );
    for (name, value) in &outgoing.target.headers {
        let unsound = |_| format!("the stored header {name} is not sound");
        headers.insert(
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsound(()))?,
            HeaderValue::from_str(value).map_err(|_| unsound(()))?,
        );
    }
    for (name, value) in [
        ("webhook-id", outgoing.message_id.to_owned()),
        ("webhook-timestamp", timestamp_s.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ] {
        let value = HeaderValue::try_from(value)
            .map_err(|_| format!("the header {name} could not be built"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The innermost cause of a failed request, which is where the reason lies. The URL is left out: it
/// is in the timer, and may hold a token. What this machine lacks is not charged to the timer.
fn network_error(error: &reqwest::Error) -> HandlerError {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if cause.downcast_ref().is_some_and(is_own_shortage) {
        return HandlerError::uncharged(format!("this machine could not call out: {cause}"));
    }
    HandlerError::new(if error.is_connect() {
        format!("could not connect: {cause}")
    } else {
        format!("the request failed: {cause}")
    })
}

/// Whether a connection failed for want of something of this machine: files, ports, memory.
fn is_own_shortage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    // No kind stands for too many open files: 23 is ENFILE, 24 EMFILE, 105 Linux's ENOBUFS.
    matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::OutOfMemory
    ) || (cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)))
        || (cfg!(target_os = "linux") && error.raw_os_error() == Some(105))
}

fn excerpt(text: &[u8]) -> String {
    let start = text
        .get(..text.len().min(4 * EXCERPT_CHARS_MAX))
        .unwrap_or_default();
    let start = String::from_utf8_lossy(start);
    let words: Vec<&str> = start
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ").chars().take(EXCERPT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_told_from_what_the_receiver_does() {
        use std::io::{Error, ErrorKind};
        for own in [
            Error::from_raw_os_error(24),
            Error::from_raw_os_error(23),
            Error::from(ErrorKind::AddrNotAvailable),
        ] {
            assert!(is_own_shortage(&own), "{own}");
        }
        for theirs in [
            Error::from(ErrorKind::ConnectionRefused),
            Error::from(ErrorKind::ConnectionReset),
            Error::from(ErrorKind::TimedOut),
            Error::other("name not known"),
        ] {
            assert!(!is_own_shortage(&theirs), "{theirs}");
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line_of_text() {
        assert_eq!(
            excerpt(b"no\r\n  such\ttenant\x1b[31m"),
            "no such tenant [31m"
        );
        assert_eq!(excerpt(&[0xff, b'a']), "\u{fffd}a");
        assert_eq!(
            excerpt("\u{e9}".repeat(1_000).as_bytes()).chars().count(),
            EXCERPT_CHARS_MAX
        );
        assert_eq!(excerpt(b""), "");
    }
}

use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};

/// What stands between two steps.
pub(super) const BETWEEN: &str = "\n---\n";

/// One thing that happens.
pub(super) enum Step {
    Request(Box<Request<Vec<u8>>>),
    Wait(u64),
    Answer(StatusCode, Option<String>),
    Deliver,
    Claim,
}

impl Step {
    /// Reads a step; `None` for a request that no HTTP parser would let through.
    pub(super) fn read(written: &str) -> Option<Self> {
        let (word, rest) = written.split_once(' ').unwrap_or((written, ""));
        match word {
            // Two years at most: the clock must not pass the latest due.
            "wait" => Some(Self::Wait(
                rest.parse().ok().filter(|ms| *ms <= 63_072_000_000)?,
            )),
            "deliver" => Some(Self::Deliver),
            "claim" => Some(Self::Claim),
            "answer" => {
                let (status, retry_after) = rest.split_once(' ').unwrap_or((rest, ""));
                let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
                let retry_after = (!retry_after.is_empty()).then(|| retry_after.to_owned());
                (!status.is_informational()).then_some(Self::Answer(status, retry_after))
            }
            _ => request(written).map(Box::new).map(Self::Request),
        }
    }
}

fn request(written: &str) -> Option<Request<Vec<u8>>> {
    let (head, body) = written.split_once("\n\n").unwrap_or((written, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let uri: Uri = target.parse().ok()?;
    let mut request = Request::new(body.as_bytes().to_vec());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).ok()?;
        if name == CONTENT_TYPE || name == HOST {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    Some(request)
}

//! What can go wrong, in words that say what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::document::Document;

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(
        "`{url}` is not the address of a server: {reason}\n  write it like http://127.0.0.1:7431"
    )]
    ServerAddress { url: String, reason: String },

    #[error(
        "cannot speak HTTPS with {url}: {reason}\n  are root certificates installed on this machine?"
    )]
    Encryption { url: String, reason: String },

    #[error(
        "no server answers at {url}: {reason}\n  start one with `dueline serve`, or name another \
         with --server URL or DUELINE_SERVER"
    )]
    NoServer { url: String, reason: String },

    #[error(
        "the server at {url} did not answer within {seconds} s; whether it did the work is not known"
    )]
    TimedOut { url: String, seconds: u64 },

    #[error(
        "the connection to {url} broke: {reason}; whether the server did the work is not known"
    )]
    Broken { url: String, reason: String },

    #[error("{0}")]
    Refused(Box<Problem>),

    #[error("{url} answered {status}, but not as a dueline server does: {excerpt}")]
    NotDueline {
        url: String,
        status: u16,
        excerpt: String,
    },

    #[error("{} cannot be read: {source}", .path.display())]
    PayloadFile { path: PathBuf, source: io::Error },

    #[error("{} does not hold JSON: {source}", .path.display())]
    PayloadJson {
        path: PathBuf,
        source: serde_json::Error,
    },

    #[error(
        "there is no directory {}\n  name the one that `dueline serve` uses with --data DIR",
        .path.display()
    )]
    NoDataDirectory { path: PathBuf },

    #[error("there is no database {}: no server has used this directory", .path.display())]
    NoDatabase { path: PathBuf },

    #[error("{}", chain(.0))]
    Database(dueline_sqlite::OpenError),

    #[error("{}", chain(.0))]
    Serve(dueline_server::StartError),

    #[error("a document could not be written as JSON: {0}")]
    Json(serde_json::Error),

    #[error("{0}")]
    Usage(String),

    #[error("the runtime could not be started: {0}")]
    Runtime(io::Error),

    #[error("the output could not be written: {0}")]
    Output(io::Error),

    /// The reader of a pipe went away, as `head` does when it has seen enough. Nobody is told.
    #[error("the reader of the output went away")]
    ReaderGone,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::Output(error)
        }
    }
}

/// An error with its causes, as one sentence.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// A refusal by the server: `application/problem+json` as RFC 9457 has it.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The document as it was sent.
    pub(crate) document: Document,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.document.fields();
        let text = |name| fields.get(name).and_then(Document::as_text);
        f.write_str(text("title").as_deref().unwrap_or("refused"))?;
        match text("code") {
            Some(code) => write!(f, " ({} {code})", self.status)?,
            None => write!(f, " ({})", self.status)?,
        }
        let errors = fields
            .get("errors")
            .map(Document::items)
            .unwrap_or_default();
        let lines: Vec<String> = errors
            .iter()
            .map(Document::fields)
            .map(|error| format!("{}: {}", error.cell("pointer"), error.cell("detail")))
            .collect();
        // A single error is often all that the detail says.
        let detail = text("detail").filter(|detail| !lines.contains(detail));
        for line in detail.iter().chain(&lines) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_title_code_detail_and_every_pointer() {
        let document = Document::parse(
            r#"{"title": "Invalid timer", "code": "invalid_timer", "detail": "2 fields", "errors": [
                {"pointer": "/due_at", "detail": "not RFC 3339"},
                {"pointer": "/retry", "detail": "unknown"}]}"#,
        );
        let problem = Problem {
            status: 422,
            document: document.unwrap(),
        };
        assert_eq!(
            problem.to_string(),
            "Invalid timer (422 invalid_timer)\n  2 fields\n  /due_at: not RFC 3339\n  /retry: unknown"
        );
    }

    #[test]
    fn a_problem_without_fields_still_shows_its_status() {
        let problem = Problem {
            status: 500,
            document: Document::parse("null").unwrap(),
        };
        assert_eq!(problem.to_string(), "refused (500)");
    }
}

//! What can go wrong, in words that say what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use dueline_server::StartError;
use dueline_sqlite::OpenError;

use crate::document::Document;
use crate::flag;

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

    #[error("{}", opening(.0))]
    Database(OpenError),

    #[error("{}", starting(.0))]
    Serve(StartError),

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

/// Why a server did not start, with the flag that helps.
fn starting(error: &StartError) -> String {
    match error {
        StartError::Listen { address, source } => format!(
            "cannot listen on {address}: {source}\n  another server may be running there; stop it, \
             or name another address with --listen"
        ),
        StartError::Store(error) => opening(error),
        other => with_cause(other),
    }
}

/// Why a database did not open, with the flag that helps.
fn opening(error: &OpenError) -> String {
    match error {
        OpenError::Locked { .. } => {
            format!("{error}, or name another directory with --data")
        }
        other => with_cause(other),
    }
}

/// An error and the cause at the bottom; what lies between says the same in other words. SQLite ends its
/// causes with a code, which says nothing more.
fn with_cause(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        causes.push(inner.to_string());
        cause = inner.source();
    }
    let deepest = causes
        .iter()
        .rfind(|cause| !cause.starts_with("Error code "))
        .or(causes.last());
    match deepest {
        Some(deepest) if !text.contains(deepest.as_str()) => format!("{text}\n  {deepest}"),
        _ => text,
    }
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
        let errors: Vec<_> = errors
            .iter()
            .map(|error| {
                let fields = error.fields();
                (fields.cell("pointer"), fields.cell("detail"))
            })
            .collect();
        let as_line = |name: &str, detail: &str| match name {
            "" => detail.to_owned(),
            name => format!("{name}: {detail}"),
        };
        // The detail of a single error is that error.
        let is_error = |text: &String| {
            errors
                .iter()
                .any(|(pointer, detail)| *text == as_line(pointer, detail))
        };
        if let Some(detail) = text("detail").filter(|text| !is_error(text)) {
            write!(f, "\n  {detail}")?;
        }
        for (pointer, detail) in &errors {
            write!(f, "\n  {}", as_line(&flag::of(pointer), detail))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_title_code_detail_and_every_error_by_its_flag() {
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
            "Invalid timer (422 invalid_timer)\n  2 fields\n  --at: not RFC 3339\n  /retry: unknown"
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

    #[test]
    fn the_detail_of_a_single_error_is_shown_once() {
        for (pointer, line) in [("/delay", "--in: too long"), ("", "too long")] {
            let detail = if pointer.is_empty() {
                "too long".to_owned()
            } else {
                format!("{pointer}: too long")
            };
            let document = serde_json::json!({
                "title": "No", "detail": detail,
                "errors": [{ "pointer": pointer, "detail": "too long" }],
            });
            let problem = Problem {
                status: 422,
                document: Document::parse(&document.to_string()).unwrap(),
            };
            assert_eq!(problem.to_string(), format!("No (422)\n  {line}"));
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Self>>);

    #[test]
    fn a_cause_is_told_once_and_in_the_words_that_say_most() {
        let code = Layer("Error code 26: file is not a database", None);
        let sqlite = Layer("file is not a database", Some(Box::new(code)));
        let store = Layer("damaged; restore it", Some(Box::new(sqlite)));
        let open = Layer("x.db is damaged; restore it", Some(Box::new(store)));
        assert_eq!(
            with_cause(&open),
            "x.db is damaged; restore it\n  file is not a database"
        );
        assert_eq!(with_cause(&Layer("alone", None)), "alone");
        let repeated = Layer("no room: x", Some(Box::new(Layer("no room", None))));
        assert_eq!(with_cause(&repeated), "no room: x");
    }
}

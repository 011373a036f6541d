//! One request, as a command describes it.

use serde::Serialize;

use super::Path;
use crate::failure::Failure;

/// A request to the server.
#[derive(Debug)]
pub(crate) struct Request {
    method: reqwest::Method,
    path: Path,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Option<(&'static str, String)>,
}

impl Request {
    pub(crate) fn get(path: Path) -> Self {
        Self::new(reqwest::Method::GET, path)
    }

    pub(crate) fn delete(path: Path) -> Self {
        Self::new(reqwest::Method::DELETE, path)
    }

    pub(crate) fn post(path: Path) -> Self {
        Self::new(reqwest::Method::POST, path)
    }

    pub(crate) fn put(path: Path) -> Self {
        Self::new(reqwest::Method::PUT, path)
    }

    pub(crate) fn patch(path: Path) -> Self {
        Self::new(reqwest::Method::PATCH, path)
    }

    /// Adds a parameter if it has a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a header if it has a value.
    pub(crate) fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.headers
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Only if the timer is of this generation.
    pub(crate) fn if_match(self, generation: Option<&str>) -> Self {
        self.header(
            "if-match",
            generation.map(|generation| format!("\"{generation}\"")),
        )
    }

    /// Carries this document.
    pub(crate) fn json(self, body: &impl Serialize) -> Result<Self, Failure> {
        self.body("application/json", body)
    }

    /// Carries this change of a document.
    pub(crate) fn merge_patch(self, body: &impl Serialize) -> Result<Self, Failure> {
        self.body("application/merge-patch+json", body)
    }

    fn body(mut self, content_type: &'static str, body: &impl Serialize) -> Result<Self, Failure> {
        self.body = Some((
            content_type,
            serde_json::to_string(body).map_err(Failure::Json)?,
        ));
        Ok(self)
    }

    pub(super) fn build(&self, http: &reqwest::Client, server: &str) -> reqwest::RequestBuilder {
        let url = format!("{server}{}{}", self.path.as_str(), self.query_text());
        let mut builder = http.request(self.method.clone(), url);
        for (name, value) in &self.headers {
            builder = builder.header(*name, value);
        }
        if let Some((content_type, body)) = &self.body {
            builder = builder
                .header("content-type", *content_type)
                .body(body.clone());
        }
        builder
    }

    fn query_text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.query {
            text.push(if text.is_empty() { '?' } else { '&' });
            let value =
                percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            text.push_str(&format!("{name}={value}"));
        }
        text
    }

    fn new(method: reqwest::Method, path: Path) -> Self {
        Self {
            method,
            path,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        }
    }
}

use dueline::timers::TimerState;
use http::Uri;
use url::form_urlencoded;

use super::problem::Problem;
use crate::service::{
    FieldErrors, ListFilter, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PageRequest, check_prefix,
};
use crate::time_text::parse_rfc3339_ms;

/// The parameters of a query, each taken once; what is left over is unknown. Errors point at
/// `?name`.
#[derive(Debug)]
pub(super) struct Query {
    parameters: Vec<(String, String)>,
    known: Vec<&'static str>,
    errors: FieldErrors,
}

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self {
            parameters: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            known: Vec::new(),
            errors: FieldErrors::new(),
        }
    }

    /// Takes a parameter; an empty one counts as absent.
    pub(super) fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let at = self
            .parameters
            .iter()
            .position(|(given, _)| given == name)?;
        let (_, value) = self.parameters.remove(at);
        if self.parameters.iter().any(|(given, _)| given == name) {
            self.parameters.retain(|(given, _)| given != name);
            self.errors
                .add(format!("?{name}"), "this parameter appears twice");
        }
        Some(value).filter(|value| !value.is_empty())
    }

    /// Takes a parameter and reads it.
    pub(super) fn take_parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.take(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(detail) => {
                self.errors.add(format!("?{name}"), detail);
                None
            }
        }
    }

    /// Takes `page_size` and `page_token`.
    pub(super) fn take_page(&mut self) -> PageRequest {
        PageRequest {
            size: self
                .take_parsed("page_size", page_size)
                .unwrap_or(PAGE_SIZE_DEFAULT),
            token: self.take("page_token"),
        }
    }

    /// Takes the filter of a list of timers.
    pub(super) fn take_filter(&mut self) -> ListFilter {
        ListFilter {
            states: self.take_parsed("state", states),
            due_before_ms: self.take_parsed("due_before", parse_rfc3339_ms),
            prefix: self.take_parsed("prefix", |text| match check_prefix(text) {
                Ok(()) => Ok(text.to_owned()),
                Err(error) => Err(error.to_string()),
            }),
        }
    }

    /// Takes a switch: `true` or `false`.
    pub(super) fn take_switch(&mut self, name: &'static str) -> bool {
        self.take_parsed(name, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("must be true or false".to_owned()),
        })
        .unwrap_or(false)
    }

    /// Ends the reading: parameters that nobody took are unknown.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in &self.parameters {
            let detail = if self.known.is_empty() {
                "this route takes no parameters".to_owned()
            } else {
                format!("unknown parameter; known here: {}", self.known.join(", "))
            };
            self.errors.add(format!("?{name}"), detail);
        }
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::impossible(self.errors.into_vec()))
        }
    }
}

/// Refuses every parameter.
pub(super) fn no_parameters(uri: &Uri) -> Result<(), Problem> {
    Query::of(uri).finish()
}

/// Reads the size of a page.
pub(super) fn page_size(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|size| (1..=PAGE_SIZE_MAX).contains(size))
        .ok_or_else(|| format!("must be a whole number from 1 to {PAGE_SIZE_MAX}"))
}

fn states(text: &str) -> Result<Vec<TimerState>, String> {
    let mut states: Vec<TimerState> = Vec::new();
    for word in text.split(',').map(str::trim) {
        let state = TimerState::ALL
            .into_iter()
            .find(|state| state.as_str() == word)
            .ok_or("must be of pending, claimed, retrying, dead, separated by commas")?;
        states.push(state);
    }
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

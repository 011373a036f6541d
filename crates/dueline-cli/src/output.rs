//! Tables for people, one JSON document for programs.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use crate::arguments::OutputFormat;
use crate::failure::Failure;

/// A column of a table: its heading, and where its text comes from.
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) cell: fn(&Value) -> String,
}

/// Where results and complaints go.
#[derive(Debug)]
pub(crate) struct Output {
    format: OutputFormat,
}

impl Output {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format }
    }

    /// Shows one document: as JSON whole, as a table of one row.
    pub(crate) fn row(&mut self, document: &Value, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => write_json(document),
            OutputFormat::Table => write_table(std::slice::from_ref(document), columns),
        }
    }

    /// Shows a list: as JSON the document whole, as a table `rows`. Says so if more follows.
    pub(crate) fn list(
        &mut self,
        document: &Value,
        rows: &[Value],
        columns: &[Column],
        none: &str,
    ) -> Result<(), Failure> {
        if self.format == OutputFormat::Json {
            return write_json(document);
        }
        if rows.is_empty() {
            self.note(none)?;
        } else {
            write_table(rows, columns)?;
        }
        match document.get("next_page_token").and_then(Value::as_str) {
            Some(token) => self.note(&format!("more follow: --limit N, or --page-token {token}")),
            None => Ok(()),
        }
    }

    /// Shows one document with a line for each field.
    pub(crate) fn fields(&mut self, document: &Value) -> Result<(), Failure> {
        match (self.format, document.as_object()) {
            (OutputFormat::Table, Some(object)) => {
                let mut table = plain_table();
                for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
                    table.add_row([name.clone(), cell_text(value)]);
                }
                write_line(&table.trim_fmt())
            }
            _ => write_json(document),
        }
    }

    /// Says that it is done: as JSON `document`, else `sentence`.
    pub(crate) fn done(&mut self, sentence: &str, document: &Value) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => write_json(document),
            OutputFormat::Table => write_line(sentence),
        }
    }

    /// A remark beside the result. It goes to the standard error, so that a pipe gets the result alone.
    pub(crate) fn note(&self, text: &str) -> Result<(), Failure> {
        writeln!(io::stderr().lock(), "{text}").map_err(Failure::Output)
    }

    /// Shows why it failed; programs get a refusal as the server sent it.
    pub(crate) fn failure(&self, failure: &Failure) {
        let text = match (self.format, failure) {
            (OutputFormat::Json, Failure::Refused(problem)) => problem.document.to_string(),
            (OutputFormat::Json, other) => {
                serde_json::json!({"title": "dueline failed", "detail": other.to_string()})
                    .to_string()
            }
            (OutputFormat::Table, other) => format!("error: {other}"),
        };
        // There is nobody left to tell if this fails; the exit code says it too.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// The text of a field for a cell: words without quotes, everything else as JSON.
pub(crate) fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The text of the field `name` of `document`, or nothing.
pub(crate) fn field(document: &Value, name: &str) -> String {
    document.get(name).map(cell_text).unwrap_or_default()
}

fn write_table(rows: &[Value], columns: &[Column]) -> Result<(), Failure> {
    let mut table = plain_table();
    table.set_header(columns.iter().map(|column| column.heading));
    for row in rows {
        table.add_row(columns.iter().map(|column| (column.cell)(row)));
    }
    write_line(&table.trim_fmt())
}

/// No lines and no colours; cells are folded to the width of a terminal, and left whole in a pipe.
fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let arrangement = if io::stdout().is_terminal() {
        ContentArrangement::Dynamic
    } else {
        ContentArrangement::Disabled
    };
    table.set_content_arrangement(arrangement);
    table
}

fn write_json(document: &Value) -> Result<(), Failure> {
    write_line(&format!("{document:#}"))
}

fn write_line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()?;
    Ok(())
}

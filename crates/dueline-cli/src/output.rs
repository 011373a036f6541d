//! Tables for people, one JSON document for programs.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;

use crate::arguments::OutputFormat;
use crate::document::{Document, Fields};
use crate::failure::Failure;

/// A column of a table: its heading, and where its text comes from.
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) cell: fn(&Fields) -> String,
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

    pub(crate) fn is_json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Shows one document: as JSON whole, as a table of one row.
    pub(crate) fn row(&self, document: &Document, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => write_line(&document.to_string()),
            OutputFormat::Table => write_table(std::slice::from_ref(document), columns),
        }
    }

    /// Shows a list: as JSON `whole`, as a table its rows or `none`.
    pub(crate) fn list(
        &self,
        whole: &Document,
        rows: &[Document],
        columns: &[Column],
        none: &str,
    ) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => write_line(&whole.to_string()),
            OutputFormat::Table if rows.is_empty() => self.note(none),
            OutputFormat::Table => write_table(rows, columns),
        }
    }

    /// Shows one document with a line for each field that has a value.
    pub(crate) fn fields(&self, document: &Document) -> Result<(), Failure> {
        let fields = document.fields();
        if self.is_json() || fields.is_empty() {
            return write_line(&document.to_string());
        }
        let mut table = plain_table();
        for (name, value) in fields.iter() {
            add_field(&mut table, name, value);
        }
        write_table_text(table)
    }

    /// Says that it is done: as JSON `document`, else `sentence`.
    pub(crate) fn done(&self, sentence: &str, document: &impl ToString) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => write_line(&document.to_string()),
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
                json!({ "title": "dueline failed", "detail": other.to_string() }).to_string()
            }
            (OutputFormat::Table, other) => format!("error: {other}"),
        };
        // There is nobody left to tell if this fails; the exit code says it too.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// A line for the field, or one for each field in it. A payload is its owner's JSON and stays that.
fn add_field(table: &mut Table, name: &str, value: &Document) {
    let inner = value.fields();
    if value.is_null() {
        return;
    }
    if name == "payload" || inner.is_empty() {
        table.add_row([name.to_owned(), value.cell()]);
        return;
    }
    for (below, value) in inner.iter().filter(|(_, value)| value.cell() != "{}") {
        add_field(table, &format!("{name}.{below}"), value);
    }
}

fn write_table(rows: &[Document], columns: &[Column]) -> Result<(), Failure> {
    let mut table = plain_table();
    table.set_header(columns.iter().map(|column| column.heading));
    for row in rows {
        let fields = row.fields();
        table.add_row(columns.iter().map(|column| (column.cell)(&fields)));
    }
    write_table_text(table)
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

/// Columns begin at the left edge, two spaces apart.
fn write_table_text(mut table: Table) -> Result<(), Failure> {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    write_line(&table.trim_fmt())
}

/// Writes a line to the standard output.
pub(crate) fn write_line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()?;
    Ok(())
}

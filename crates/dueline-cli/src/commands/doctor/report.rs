use std::path::Path;

use dueline_sqlite::inspect::Inspection;
use serde_json::json;

use super::findings::{Finding, Level};
use crate::document::Document;
use crate::failure::Failure;
use crate::output::{Column, Output};

const COLUMNS: &[Column] = &[
    Column {
        heading: "CHECK",
        cell: |finding| finding.cell("check"),
    },
    Column {
        heading: "RESULT",
        cell: |finding| finding.cell("level"),
    },
    Column {
        heading: "DETAIL",
        cell: |finding| finding.cell("detail"),
    },
];

/// Shows the report: a table of findings, or a document with the figures too.
pub(super) fn show(
    database: &Path,
    inspection: &Inspection,
    findings: &[Finding],
    output: &Output,
) -> Result<(), Failure> {
    let kinds: Vec<_> = inspection
        .contents
        .iter()
        .flat_map(|contents| &contents.kinds)
        .collect();
    let contents = inspection.contents.as_ref().map(|contents| {
        let kinds: Vec<_> = kinds
            .iter()
            .map(|(kind, counts)| {
                json!({ "kind": kind.0, "timers": counts.timers, "overdue": counts.overdue,
                        "dead": counts.dead, "paused": counts.paused })
            })
            .collect();
        json!({ "partitions": contents.partitions, "kinds": kinds, "wakes": contents.wakes,
                "quarantined": contents.quarantined, "malformed": contents.malformed,
                "lanes_without_wake": contents.lanes_without_wake.count,
                "names_adrift": contents.names_adrift.count })
    });
    let report = json!({
        "database": database.to_string_lossy(),
        "healthy": findings.iter().all(|finding| finding.level != Level::Problem),
        "findings": findings,
        "schema": inspection.schema,
        "in_use": inspection.in_use,
        "file_bytes": inspection.file_bytes,
        "log_bytes": inspection.log_bytes,
        "contents": contents,
    });
    let whole = document(&report)?;
    let rows: Vec<Document> = whole
        .fields()
        .get("findings")
        .map(Document::items)
        .unwrap_or_default();
    output.list(&whole, &rows, COLUMNS, "nothing was checked")
}

fn document(value: &serde_json::Value) -> Result<Document, Failure> {
    Document::parse(&value.to_string()).map_err(Failure::Json)
}

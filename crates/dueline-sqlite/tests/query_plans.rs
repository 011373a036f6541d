//! No access path is left to planner statistics: every statement seeks on a primary key or the
//! unique name, with no temporary sort, before and after statistics were gathered.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use dueline::sql::STATEMENTS;
use dueline::store::Batch;
use rusqlite::StatementStatus;
use support::{Home, KIND, apply, partition, timer};

fn plan(connection: &rusqlite::Connection, statement: &str) -> Vec<String> {
    let mut explain = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
        .unwrap();
    for index in 1..=explain.parameter_count() {
        explain.raw_bind_parameter(index, 1).unwrap();
    }
    let mut rows = explain.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get::<_, String>(3).unwrap());
    }
    lines
}

#[test]
fn every_statement_seeks_on_a_key() {
    let home = Home::new();
    let store = home.open();
    for index in 0..50 {
        apply(
            &store,
            &partition(&format!("p{index}")),
            Batch::new().put(timer(KIND, 9, 1), "x"),
        );
    }
    let connection = home.stranger();
    for analyzed in [false, true] {
        if analyzed {
            connection.execute_batch("ANALYZE").unwrap();
        }
        assert!(STATEMENTS.len() > 20);
        for statement in STATEMENTS {
            for line in plan(&connection, statement) {
                let last_id = line == "SCAN part" && statement.contains("ORDER BY id DESC LIMIT 1");
                let seeks = line.starts_with("SEARCH")
                    && (line.contains("PRIMARY KEY") || line.contains("(name"));
                let no_table = line.contains("CONSTANT ROW") || line.starts_with("SCALAR SUBQUERY");
                assert!(seeks || last_id || no_table, "{statement}\n  {line}");
            }
        }
    }
}

/// SQLite compiles a statement again for a value that may change its plan. Once every scan and every look
/// for wakes was compiled at each use, three quarters of the time that an object spent on them.
#[test]
fn no_statement_is_compiled_again_for_what_is_bound() {
    let home = Home::new();
    let store = home.open();
    let connection = home.stranger();
    for sql in STATEMENTS {
        let mut statement = connection.prepare(sql).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        for value in [0, 1, 2, 1, 16, 17, 0] {
            for index in 1..=statement.parameter_count() {
                statement.raw_bind_parameter(index, value).unwrap();
            }
            // What a row holds does not matter here, nor whether it may be written.
            let mut rows = statement.raw_query();
            while let Ok(Some(_)) = rows.next() {}
            drop(rows);
            statement.clear_bindings();
        }
        connection.execute_batch("ROLLBACK").unwrap();
        let compiled = statement.get_status(StatementStatus::RePrepare);
        assert_eq!(compiled, 0, "{sql}");
    }
    drop(store);
}

#[test]
fn the_wakes_of_a_kind_are_sought_by_time_and_partition() {
    let home = Home::new();
    let store = home.open();
    let statement = STATEMENTS
        .iter()
        .find(|text| text.contains("COALESCE(p.name"))
        .unwrap();
    let lines = plan(&home.stranger(), statement);
    assert!(
        lines[0].contains("kind=? AND (at,part)>(?,?) AND at<?"),
        "{lines:?}"
    );
    drop(store);
}

#[test]
fn the_shared_text_keeps_to_what_every_host_allows() {
    let banned = [
        "PRAGMA",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "ATTACH",
        "INDEXED BY",
    ];
    for statement in STATEMENTS {
        assert!(
            !banned.iter().any(|word| statement.contains(word)),
            "{statement}"
        );
        assert!(!statement.contains("?6"), "few parameters: {statement}");
    }
}

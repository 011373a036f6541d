//! Goal: FORMAT.md describes what a server writes. Method: a real server makes a directory, and what lies in it
//! is compared with the page.
#![cfg(test)]

mod support;

use rusqlite::Connection;
use support::server::Server;

const FORMAT: &str = include_str!("../../../FORMAT.md");

/// A directory with one timer, its server stopped.
fn directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(folder.path());
    let url = "https://example.com/h";
    let payload = r#"{"order": 42}"#;
    let create = [
        "timer",
        "create",
        "p",
        "a",
        "--in",
        "1h",
        "--url",
        url,
        "--payload",
        payload,
    ];
    server.run(&create).ok();
    server.signal("TERM");
    server.wait();
    folder
}

fn database(folder: &tempfile::TempDir) -> Connection {
    Connection::open(folder.path().join("dueline.db")).expect("the database")
}

#[test]
fn the_tables_of_a_new_database_are_those_of_the_page() {
    let words = |text: &str| -> String {
        let spaced = text
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace(';', " ; ");
        spaced.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let format = words(FORMAT);
    let folder = directory();
    let connection = database(&folder);
    let mut statement = connection
        .prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        .expect("the schema");
    let tables: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect)
        .expect("the schema");
    assert_eq!(tables.len(), 4);
    for table in tables {
        let shown = format!("{} ;", words(&table));
        assert!(format.contains(&shown), "FORMAT.md lacks: {table}");
    }
}

#[test]
fn the_record_of_a_webhook_is_the_one_of_the_page() {
    let folder = directory();
    let value: Vec<u8> = database(&folder)
        .query_row(
            "SELECT value FROM kv WHERE substr(key, 1, 3) = x'770010'",
            [],
            |row| row.get(0),
        )
        .expect("the timer of kind 16");
    let record = std::str::from_utf8(&value[12..]).expect("a record behind a header of 12 bytes");
    assert!(FORMAT.contains(record), "FORMAT.md lacks: {record}");
}

#[test]
fn every_file_of_the_directory_is_on_the_page() {
    let folder = directory();
    for entry in folder.path().read_dir().expect("the directory") {
        let name = entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("a name of text");
        assert!(
            FORMAT.contains(&format!("`{name}`")),
            "FORMAT.md lacks: {name}"
        );
    }
}

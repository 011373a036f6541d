//! Our tables under other names, for a database that others keep tables in too.

/// The words behind which a statement names a table.
const BEFORE_TABLES: [&str; 6] = ["FROM", "INTO", "JOIN", "REPLACE", "TABLE", "UPDATE"];

/// A statement with `prefix` in front of each of our tables' names, for a host whose database is not
/// ours alone: a Durable Object's application keeps tables of its own, and `meta` or `kv` may well be
/// among them. Works for every statement that a [`SqlConn`](super::SqlConn) is given, and is no parser for others.
pub fn with_table_prefix(statement: &str, prefix: &str) -> String {
    let mut done = String::with_capacity(statement.len() + 2 * prefix.len());
    let mut previous = "";
    for word in statement.split(' ') {
        if !done.is_empty() {
            done.push(' ');
        }
        let is_table = BEFORE_TABLES.contains(&previous) && !is_foreign(word);
        if is_table {
            done.push_str(prefix);
        }
        // The schema asks for its own table by its name as text.
        match word.strip_prefix('\'') {
            Some(quoted) if quoted == "meta'" => {
                done.push('\'');
                done.push_str(prefix);
                done.push_str(quoted);
            }
            _ => done.push_str(word),
        }
        previous = word;
    }
    done
}

/// What follows such a word without being a table of ours.
fn is_foreign(word: &str) -> bool {
    ["SET", "OR"].contains(&word) || word.starts_with("sqlite_")
}

#[cfg(test)]
mod tests {
    use super::super::statements as sql;
    use super::*;

    /// The tables of a statement: the words in front of which the prefix stands.
    fn tables(statement: &str) -> Vec<String> {
        let prefixed = with_table_prefix(statement, "own_");
        let words = prefixed.split([' ', '(', ')', '\'']);
        let own = words.filter_map(|word| word.strip_prefix("own_"));
        own.map(str::to_owned).collect()
    }

    #[test]
    fn every_statement_names_only_tables_with_the_prefix() {
        let schema = sql::SCHEMA_1.iter().chain(&[
            sql::META_EXISTS,
            sql::META_CREATE,
            sql::META_INSERT,
            sql::META_SET_SCHEMA,
        ]);
        for statement in sql::STATEMENTS.iter().chain(schema) {
            let found = tables(statement);
            assert!(!found.is_empty(), "no table in: {statement}");
            for table in &found {
                assert!(
                    ["kv", "part", "wake", "meta"].contains(&table.as_str()),
                    "{statement}"
                );
            }
            let plain = with_table_prefix(statement, "");
            assert_eq!(plain, *statement);
        }
    }

    #[test]
    fn joins_and_subqueries_have_both_of_their_tables() {
        assert_eq!(tables(sql::WAKES_DUE), ["wake", "part"]);
        assert_eq!(tables(sql::WAKE_PURGE), ["wake", "part"]);
        assert_eq!(tables(sql::META_EXISTS), ["meta"]);
        assert_eq!(tables(sql::WAKE_MOVE), ["wake"]);
        assert_eq!(tables(sql::FIRST_KEY_UNLESS), ["kv", "kv"]);
        assert_eq!(
            with_table_prefix(sql::ROW_PUT, "own_"),
            "INSERT INTO own_kv (part, key, value) VALUES (?1, ?2, ?3) \
             ON CONFLICT (part, key) DO UPDATE SET value = excluded.value"
        );
    }
}

//! The SQL text. Each statement walks a primary key, or the one unique index; nothing is left to
//! planner statistics.
//!
//! SQLite compiles a statement again whenever a parameter is bound that may change its plan: that of a
//! `LIMIT`, and one that equals the first column of a longer key. A plus sign before the parameter
//! says that the value does not matter. It stands wherever else a statement would be compiled at each use.

/// The rows of a partition, by its id and by its name.
pub(super) struct RowsOf {
    pub(super) by_id: &'static str,
    pub(super) by_name: &'static str,
}

pub(super) const GET_OF: RowsOf = RowsOf {
    by_id: ROW_GET,
    by_name: ROW_GET_BY_NAME,
};
pub(super) const FROM_OF: RowsOf = RowsOf {
    by_id: ROWS_FROM,
    by_name: ROWS_FROM_BY_NAME,
};
pub(super) const BEHIND_OF: RowsOf = RowsOf {
    by_id: ROWS_BEHIND,
    by_name: ROWS_BEHIND_BY_NAME,
};

/// A row's write, and the same beside a wake.
pub(super) struct RowWrite {
    pub(super) plain: &'static str,
    pub(super) beside: &'static str,
}

pub(super) const INSERT: RowWrite = RowWrite {
    plain: ROW_INSERT,
    beside: ROW_INSERT_BESIDE,
};
pub(super) const PUT: RowWrite = RowWrite {
    plain: ROW_PUT,
    beside: ROW_PUT_BESIDE,
};

const ROW_GET_BY_NAME: &str =
    "SELECT value FROM kv WHERE part = (SELECT id FROM part WHERE name = ?1) AND key = ?2";
const ROWS_FROM_BY_NAME: &str = "SELECT key, value FROM kv \
     WHERE part = (SELECT id FROM part WHERE name = ?1) AND key >= ?2 AND key < ?3 ORDER BY key LIMIT +?4";
const ROWS_BEHIND_BY_NAME: &str = "SELECT key, value FROM kv \
     WHERE part = (SELECT id FROM part WHERE name = ?1) AND key > ?2 AND key < ?3 ORDER BY key LIMIT +?4";

pub(super) const ROW_GET: &str = "SELECT value FROM kv WHERE part = ?1 AND key = ?2";
pub(super) const ROW_PRESENT: &str = "SELECT 1 FROM kv WHERE part = ?1 AND key = ?2";
pub(super) const ROW_INSERT: &str =
    "INSERT INTO kv (part, key, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
pub(super) const ROW_PUT: &str = "INSERT INTO kv (part, key, value) VALUES (?1, ?2, ?3) \
     ON CONFLICT (part, key) DO UPDATE SET value = excluded.value";
/// The same where a wake lies: its kind and time. Elsewhere nothing is written.
pub(super) const ROW_INSERT_BESIDE: &str = "INSERT INTO kv (part, key, value) SELECT ?1, ?2, ?3 \
     WHERE EXISTS (SELECT 1 FROM wake WHERE kind = ?4 AND at = ?5 AND part = ?1) ON CONFLICT DO NOTHING";
pub(super) const ROW_PUT_BESIDE: &str = "INSERT INTO kv (part, key, value) SELECT ?1, ?2, ?3 \
     WHERE EXISTS (SELECT 1 FROM wake WHERE kind = ?4 AND at = ?5 AND part = ?1) \
     ON CONFLICT (part, key) DO UPDATE SET value = excluded.value";
pub(super) const ROW_DELETE: &str = "DELETE FROM kv WHERE part = ?1 AND key = ?2";
pub(super) const ROW_ANY: &str = "SELECT 1 FROM kv WHERE part = +?1 LIMIT 1";
pub(super) const ROWS_FROM: &str = "SELECT key, value FROM kv \
     WHERE part = +?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT +?4";
pub(super) const ROWS_BEHIND: &str = "SELECT key, value FROM kv \
     WHERE part = +?1 AND key > ?2 AND key < ?3 ORDER BY key LIMIT +?4";
pub(super) const FIRST_KEY: &str = "SELECT key FROM kv \
     WHERE part = +?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT 1";
/// The same, unless there is another row: that of the pause of a lane.
pub(super) const FIRST_KEY_UNLESS: &str = "SELECT key FROM kv \
     WHERE part = +?1 AND key >= ?2 AND key < ?3 \
     AND NOT EXISTS (SELECT 1 FROM kv WHERE part = ?1 AND key = ?4) ORDER BY key LIMIT 1";
pub(super) const ROWS_STATS: &str =
    "SELECT COUNT(*), COALESCE(SUM(LENGTH(key) + LENGTH(value)), 0) FROM kv WHERE part = +?1";

pub(super) const PART_ID: &str = "SELECT id FROM part WHERE name = ?1";
pub(super) const PART_LAST_ID: &str = "SELECT id FROM part ORDER BY id DESC LIMIT 1";
pub(super) const PART_INSERT: &str = "INSERT INTO part (id, name) VALUES (?1, ?2)";
pub(super) const PART_DELETE: &str = "DELETE FROM part WHERE id = ?1";
pub(super) const PARTS_BEHIND: &str =
    "SELECT name, id FROM part WHERE name > ?1 ORDER BY name LIMIT +?2";

pub(super) const WAKE_INSERT: &str =
    "INSERT INTO wake (kind, at, part) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
pub(super) const WAKE_MOVE: &str =
    "UPDATE OR REPLACE wake SET at = ?4 WHERE kind = ?1 AND at = ?2 AND part = ?3";
pub(super) const WAKE_DELETE: &str = "DELETE FROM wake WHERE kind = ?1 AND at = ?2 AND part = ?3";
pub(super) const WAKE_PURGE: &str = "DELETE FROM wake WHERE kind = ?1 AND at = ?2 AND part = ?3 \
     AND NOT EXISTS (SELECT 1 FROM part WHERE id = ?3)";
pub(super) const WAKE_AT: &str = "SELECT 1 FROM wake WHERE kind = ?1 AND at = ?2 AND part = ?3";
pub(super) const WAKES_UP_TO: &str = "SELECT at, part FROM wake \
     WHERE kind = +?1 AND at <= ?2 ORDER BY at DESC, part DESC";
/// The first wake of the first kind at or behind this one, and whether it has no partition.
pub(super) const WAKE_HEAD: &str = "SELECT w.kind, w.at, p.id IS NULL \
     FROM wake AS w LEFT JOIN part AS p ON p.id = w.part \
     WHERE w.kind >= ?1 ORDER BY w.kind, w.at, w.part LIMIT 1";
pub(super) const WAKES_DUE: &str = "SELECT w.at, w.part, p.id IS NULL, COALESCE(p.name, x'') \
     FROM wake AS w LEFT JOIN part AS p ON p.id = w.part \
     WHERE w.kind = +?1 AND (w.at, w.part) > (?2, ?3) AND w.at <= ?4 \
     ORDER BY w.at, w.part LIMIT +?5";

pub(super) const META_EXISTS: &str =
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'";
pub(super) const META_CREATE: &str = "CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1), \
     schema INTEGER NOT NULL, unclean INTEGER NOT NULL, settled INTEGER NOT NULL)";
pub(super) const META_INSERT: &str =
    "INSERT INTO meta (id, schema, unclean, settled) VALUES (1, 0, 0, 0)";
pub(super) const META_SCHEMA: &str = "SELECT schema FROM meta WHERE id = 1";
pub(super) const META_SET_SCHEMA: &str = "UPDATE meta SET schema = ?1 WHERE id = 1";
pub(super) const META_UNCLEAN: &str = "SELECT unclean FROM meta WHERE id = 1";
pub(super) const META_SET_UNCLEAN: &str = "UPDATE meta SET unclean = ?1 WHERE id = 1";
pub(super) const META_SETTLE: &str =
    "UPDATE meta SET settled = (settled + 1) & 1073741823 WHERE id = 1";

pub(super) const SCHEMA_1: &[&str] = &[
    "CREATE TABLE part (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)",
    "CREATE TABLE kv (part INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, \
     PRIMARY KEY (part, key)) WITHOUT ROWID",
    "CREATE TABLE wake (kind INTEGER NOT NULL, at INTEGER NOT NULL, part INTEGER NOT NULL, \
     PRIMARY KEY (kind, at, part)) WITHOUT ROWID",
];

/// Every statement that runs while a database is in use, for a host that prepares them up front and
/// for tests of their query plans.
pub const STATEMENTS: &[&str] = &[
    ROW_GET,
    ROW_PRESENT,
    ROW_INSERT,
    ROW_INSERT_BESIDE,
    ROW_PUT_BESIDE,
    ROW_PUT,
    ROW_DELETE,
    ROW_ANY,
    ROWS_FROM,
    ROWS_BEHIND,
    ROW_GET_BY_NAME,
    ROWS_FROM_BY_NAME,
    ROWS_BEHIND_BY_NAME,
    FIRST_KEY,
    FIRST_KEY_UNLESS,
    ROWS_STATS,
    PART_ID,
    PART_LAST_ID,
    PART_INSERT,
    PART_DELETE,
    PARTS_BEHIND,
    WAKE_INSERT,
    WAKE_MOVE,
    WAKE_DELETE,
    WAKE_PURGE,
    WAKE_AT,
    WAKES_UP_TO,
    WAKE_HEAD,
    WAKES_DUE,
    META_SCHEMA,
    META_UNCLEAN,
    META_SET_UNCLEAN,
    META_SETTLE,
];

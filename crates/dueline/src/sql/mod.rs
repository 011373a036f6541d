//! The store contract on SQL: what SQLite in a native process and SQLite in a Durable Object share.
//!
//! The host owns the database, begins and ends its transactions, and lends a synchronous
//! [`SqlConn`]; everything between, the SQL text and the rules of the contract, is here. No PRAGMA,
//! no transaction-control SQL, at most 100 bound parameters, no integer above 2^53, and no access
//! path that depends on planner statistics.
//!
//! * [`schema`] creates and migrates the tables, one transaction a step.
//! * [`Reads`] answers the reads of one snapshot.
//! * [`Writer`] is what the one writer remembers between transactions; [`Transaction`] runs the
//!   groups of many callers in one host transaction:
//!
//! ```text
//! host: begin            Transaction::new(conn, writer)
//!       for each caller  transaction.run(partition, group)   an error: roll back, one by one
//!                        transaction.finish() -> Finished    effects written, wakes set
//!       commit           writer.committed(finished.memory)   or, if in doubt, writer.forget()
//! ```
//!
//! # Tables
//! ```sql
//! part(id INTEGER PRIMARY KEY, name BLOB UNIQUE)
//! kv(part, key, value, PRIMARY KEY (part, key)) WITHOUT ROWID
//! wake(kind, at, part, PRIMARY KEY (kind, at, part)) WITHOUT ROWID
//! meta(id = 1, schema, unclean, settled)
//! ```
//! Names are interned, so that a long name costs nothing per row. There is no second index over
//! timer rows. **Wakes lead with their kind**: a driver asks only for the kinds it can run now, and
//! with the time in front a million overdue wakes of a kind without a handler (or without a free
//! slot) would be read and thrown away at each look. With the kind in front they are never read;
//! the few kinds asked for are merged.
//!
//! # Partitions come and go
//! The row of a partition goes in the transaction that takes its last row or settles its last wake.
//! A wake set before a restart may be unknown to the writer then, and is left without a partition;
//! [`Reads::due_wakes`] skips such wakes and hands them out to be purged by the next transaction.
//! Ids are never reused while a writer lives; a later one may, which costs a spurious look.

mod audit;
mod capacity;
mod conn;
mod due;
mod lanes;
mod reads;
mod recent;
pub mod schema;
mod statements;
mod sure;
mod tables;
mod transaction;
mod verdict;
mod writer;

pub use capacity::SizeLimit;
pub use conn::{RowSink, SqlConn, SqlParam, SqlRow};
pub use due::{DueWakes, OrphanWake, WakeHead, purge_orphans};
pub use reads::{PartitionMemo, Reads};
pub use statements::STATEMENTS;
pub use tables::with_table_prefix;
pub use transaction::{Finished, Transaction};
pub use writer::{MemoryChange, Writer};

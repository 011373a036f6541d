//! Fuzz targets as plain functions: each takes any bytes and panics if a promise is broken.
//!
//! The tests of this crate run every target over the kept corpus and over seeded mutations of it, with
//! the stable compiler. The folder `fuzz` hands the same functions to libFuzzer: `cargo xtask fuzz`.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a target tells of a finding"
)]

mod arguments;
mod damaged_kinds;
mod http_requests;
mod kind_rows;
mod near;
mod operations;
mod row_keys;
mod row_values;
mod script;
mod times_and_spans;

pub use arguments::{ArgumentsReader, arguments, arguments_read_by};
pub use damaged_kinds::{Meddling, damaged_kinds, damaged_kinds_meddled};
pub use http_requests::{Answering, http_requests, http_requests_answered};
pub use kind_rows::{Reread, kind_rows, kind_rows_reread};
pub use near::{Near, corpus};
pub use operations::{Disguise, operations, operations_disguised};
pub use row_keys::{KeyReaders, row_keys, row_keys_read_by};
pub use row_values::{ValueReaders, row_values, row_values_read_by};
pub use times_and_spans::{ReadAs, TimeTexts, times_and_spans, times_and_spans_read_by};

/// A target and its name, which is the name of its corpus too.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// The target.
    pub run: fn(&[u8]),
}

impl Target {
    /// The target of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> Self {
        let found = TARGETS.into_iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("there is no target {name}"))
    }
}

/// Every target.
pub const TARGETS: [Target; 8] = [
    Target {
        name: "arguments",
        run: arguments,
    },
    Target {
        name: "damaged_kinds",
        run: damaged_kinds,
    },
    Target {
        name: "http_requests",
        run: http_requests,
    },
    Target {
        name: "kind_rows",
        run: kind_rows,
    },
    Target {
        name: "operations",
        run: operations,
    },
    Target {
        name: "row_keys",
        run: row_keys,
    },
    Target {
        name: "row_values",
        run: row_values,
    },
    Target {
        name: "times_and_spans",
        run: times_and_spans,
    },
];

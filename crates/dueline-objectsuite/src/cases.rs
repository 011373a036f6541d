//! Which cases there are.

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

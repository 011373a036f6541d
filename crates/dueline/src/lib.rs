//! Dueline.
#![forbid(unsafe_code)]

mod future;
mod kind;
pub mod limits;
pub mod memory;
pub mod rows;
pub mod runtime;
pub mod sql;
pub mod store;
pub mod timers;

pub use bytes::Bytes;
pub use future::{BoxFuture, MaybeSend, MaybeSendSync};

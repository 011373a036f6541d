//! Leases with a fencing epoch.

mod setting;
mod sweep;
mod verbs;

pub use sweep::*;
pub use verbs::*;

//! Which targets a webhook may be sent to.
//!
//! A target is checked twice: its URL when the timer is scheduled and again before each attempt, and
//! every address of its name at the moment of connecting. The resolver hands out nothing but checked
//! addresses, so the address that was checked is the one connected to.

mod address;
mod resolver;
mod target_url;

pub(crate) use resolver::GuardedResolver;
pub use resolver::{Lookup, SystemLookup};
pub(crate) use target_url::check_target_url;

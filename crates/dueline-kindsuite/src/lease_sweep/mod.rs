//! Leases with a fencing epoch.

mod costs;
mod histories;
mod setting;
mod sweep;
mod verbs;

pub use costs::*;
pub use histories::{random_histories_keep_one_holder_and_growing_epochs, scenario};
pub use sweep::*;
pub use verbs::*;

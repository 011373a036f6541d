//! A transactional outbox, and the relay to other partitions.

mod appending;
mod costs;
mod dead;
mod delivering;
mod failing;
mod fixture;
mod golden;
mod histories;
mod judge;
mod malformed;

mod races;
mod relay;
mod relay_fixture;
mod relay_limits;
mod sleeping;

pub use appending::*;
pub use costs::*;
pub use dead::*;
pub use delivering::*;
pub use failing::*;
pub use golden::*;
pub use histories::*;
pub use malformed::*;
pub use races::*;
pub use relay::*;
pub use relay_limits::*;
pub use sleeping::*;

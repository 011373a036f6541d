//! Random histories of tickets: clients, drivers, crashes, faults and clocks over one store, and the rules
//! that every commit is held to.

mod checker;
mod client;
mod history;
mod process;
mod scenario;

pub use history::{Seen, run};
pub use scenario::scenario;

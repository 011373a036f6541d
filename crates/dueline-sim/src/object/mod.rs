//! A world with one object in it: the real engine and the real driver of an object, on the simulated
//! platform, asked by the same clients and held to the same promises as nodes with a store.
//!
//! ```text
//! stage      what happens in turns that are not durable, kept back until they are
//! storage    the platform's storage, watched
//! platform   when alarms are delivered, instances made, evicted, trapped
//! visitor    requests that run what is due themselves
//! ```

mod checks;
mod end;
mod platform;
mod spec;
mod stage;
mod storage;
mod trap;
mod visitor;
mod world;

pub use spec::{Mishap, ObjectSpec, move_into};
pub use world::run;

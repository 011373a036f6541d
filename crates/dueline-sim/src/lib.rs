//! A deterministic simulator of Dueline: the real engine and the real native driver on clocks, a
//! store and a schedule that a seed decides, held to the promises by the checkers of
//! `dueline-history`.
#![forbid(unsafe_code)]
#![allow(unreachable_pub)]

mod client;
mod disk;
mod executor;
mod handlers;
mod node;
mod plan;
mod recorder;
mod tag;
mod time;
mod world;

pub use plan::Plan;
pub use world::{Outcome, run};

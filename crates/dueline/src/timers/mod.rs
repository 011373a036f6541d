//! Timers.
pub use crate::kind::{KindSet, TimerKind};

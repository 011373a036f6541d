//! Dueline beside the reference implementation of the same idea, tick by tick.
//!
//! Both engines start a tick from the same rows, with the same script of handlers, the same clock and a
//! memory store each; what they did is then compared: which timers ran and when, whose effects committed
//! and in which order, the counts of the reports, the rows left and the next wake. What may differ is
//! named in [`Difference`], each with a rule of its own in [`judge`]; anything else fails. After a
//! difference that is named the reference is given our rows, so that the next tick starts from one state
//! again and a difference is looked at where it arises, not ten ticks later.
//!
//! Not compared, for want of a counterpart: names, cancels, pauses, the dead class, detached calls.
//!
//! Only public interfaces of either side are used.

mod after;
mod difference;
pub mod judge;
mod ours;
mod random;
mod reference;
mod run;
mod scenario;
mod script;

pub use after::{After, Counts, Id, Row, Run};
pub use difference::Difference;
pub use ours::{BACK_OFF, Ours};
pub use random::Random;
pub use reference::Reference;
pub use run::{Failure, Totals, run_scenario, shrink};
pub use scenario::{Budget, Fault, KINDS, MALFORMED_KIND, Scenario, Step, UNKNOWN_KIND};
pub use script::{Act, Script};

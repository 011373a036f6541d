//! A deterministic simulator of Dueline: the real engine and the real native driver on clocks, a
//! store and a schedule that a seed decides, held to the promises by the checkers of
//! `dueline-history`.
#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "the rooms are private, and what one shows the others is public in it"
)]

mod client;
mod disk;
mod draw;
mod executor;
mod focus;
mod handlers;
mod kinds;
mod node;
mod object;
mod paused;
mod plan;
mod recorder;
mod shrink;
mod tag;
mod time;
mod verdict;
mod watch;
mod world;

pub use plan::{KINDS_FROM, OBJECTS, Plan};
pub use shrink::shrink;
pub use verdict::{Verdict, judge};

/// Places that a thousand simulations must come by, or they are blind for what lies there.
pub const MARKS: &[&str] = &[
    "a client is left in doubt",
    "a clock jumps",
    "a commit ends in an I/O error",
    "a commit in doubt is found at the next opening",
    "a commit in doubt is overwritten",
    "a commit is late",
    "a commit is lost",
    "a commit is refused",
    "a commit is too early",
    "a commit lands late",
    "a guard is lost",
    "a handler kills its process",
    "a node crashes",
    "a node stands still",
    "a node stops cleanly",
    "a page is short",
    "a read fails",
    "a tick is refused by the store",
    "a tick stops on its budget",
    "the answer of a commit is lost",
    "the store is closed in doubt",
    "the store is full",
];

/// The same for simulations of objects.
pub const OBJECT_MARKS: &[&str] = &[
    "a turn is lost",
    "an alarm comes early",
    "an alarm comes late",
    "an alarm comes twice",
    "an alarm is given up",
    "an alarm is lost",
    "an alarm is refused",
    "an alarm is restored",
    "an alarm is tried again",
    "an answer goes with its turn",
    "an object is evicted",
    "an object traps",
    "it is not told whether a turn is durable",
    "what is due is run by hand",
];

/// The same for simulations of built-in kinds: what the scenarios count.
pub const KIND_MARKS: &[&str] = &[
    "a ticket ends",
    "a ticket is set aside",
    "abandoned",
    "aborted",
    "absorbed",
    "appended",
    "called",
    "charged",
    "closed",
    "committed",
    "contributed",
    "edited",
    "extended",
    "fenced write",
    "forgotten",
    "granted",
    "kept",
    "let go",
    "published",
    "purged",
    "released",
    "released behind others",
    "renewed",
    "set aside",
    "stale write",
    "swept",
    "told",
    "whole",
    // Beside what befalls every world of nodes.
    "a clock jumps",
    "a commit is late",
    "a commit is lost",
    "a commit is refused",
    "a commit lands late",
    "a guard is lost",
    "a lane is paused",
    "a lane is resumed",
    "a node crashes",
    "a node stands still",
    "a page is short",
    "the answer of a commit is lost",
    "the store is full",
];

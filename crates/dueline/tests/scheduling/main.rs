//! The verbs of scheduling, over the store in memory and a clock that stands still.
//!
//! Goal: every verb does what its documentation says in every state of a timer, whatever another
//! writer does in between, and never leaves a name that points at nothing or a timer that no name
//! points at. Method: states are set by hand as rows, a race is run inside the store just before
//! the commit it races, and the whole partition is checked after each step.

// mod bulk;
mod cancel;
mod change;
mod contention;
mod dead;
mod fixture;
mod kind_names;
// mod limits;
mod lanes;
mod listing;
// mod model;
mod plan;
mod policy;

//! A model of what the engine may do to its rows, and a store that lets several engines, clients,
//! crashes and faults meet between any two calls.
//!
//! An [`Arena`] holds a memory store, the faults to come and a [`Ledger`] that is shown every batch
//! that commits. The ledger knows no plan and no handler: it holds the rows to rules that must be
//! true of every history. Nothing vanishes without its effect, nothing takes effect twice or before
//! its due, names and timers agree, attempts are charged once, every lane has a wake.
//!
//! Each actor works through an [`ActorStore`] of the arena, which gives way before and after every
//! call; [`Tasks`] polls what is under way in an order that a [`Random`] draws. A history is so its
//! seed, and can be run again.

mod actor;
mod arena;
mod diff;
mod effects;
mod ledger;
mod random;
pub mod script;
mod tasks;

pub use actor::ActorStore;
pub use arena::{Arena, Committed, Mishap, Source};
pub use effects::{
    EffectTold, cut_key, cuts_of, effect_key, effect_key_of, effects_of, effects_told, mark_effect,
};
pub use ledger::{Ledger, Occurrence};
pub use random::Random;
pub use tasks::Tasks;

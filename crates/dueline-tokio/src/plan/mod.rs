//! Which partition ticks next: decided in memory, from stored wakes, without a clock or a store.

mod book;
mod hold;
mod window;

pub(crate) use book::{Book, Ended, NextTurn};
pub(crate) use hold::refused as refused_for;
pub(crate) use window::{Window, window_of};

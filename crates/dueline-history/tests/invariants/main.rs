//! Goal: every rule of every invariant lets a right history pass, and names a wrong one, it alone.
//! Method: small histories, each with one thing changed, made of rows as the engine writes them.
#![cfg(test)]
#![allow(
    unreachable_pub,
    reason = "the modules of a test share what is made for them"
)]

mod attempts;
mod due;
mod marks;
mod owners;
mod story;
mod ticks;
mod timers;

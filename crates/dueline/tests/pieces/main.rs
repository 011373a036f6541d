//! The pieces the engine is made of: rows, generations, sets of kinds, occurrence ids.
//!
//! Goal: what is written can be read again, in the order its numbers have, and no bytes make a
//! decoder panic. Method: random values and random bytes, and golden values where the format is
//! fixed.
#![cfg(test)]

mod generations;
mod golden;
mod kinds;
mod rows;

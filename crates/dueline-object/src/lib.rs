//! Dueline inside a Durable Object: the object driver for `wasm32-unknown-unknown`, bound to the
//! platform's storage and to a host in JavaScript.
//!
//! For the TypeScript package `@dueline/durable-object`, which is the only caller: its classes own the
//! handlers, the payloads' encoding and the errors that a user sees. Here is what lies between them and
//! `dueline-worker`, and no rule of timers at all.
//!
//! | file | what |
//! |---|---|
//! | `platform` | the types of the platform and of the host, as they are imported |
//! | `tasks` | running futures, each poll in a turn of its own that the host can watch for a trap |
//! | `connection`, `storage` | SQL, transactions, effects and the alarm of `ctx.storage` |
//! | `clocks` | time, sleep, entropy |
//! | `handler`, `outcome` | a handler in JavaScript as a handler of the engine |
//! | `object`, `verbs`, `kinds` | what the package calls |
//! | `records`, `literals`, `errors` | what it is given back |
//! | `built_in` | the built-in kinds, in the build that has them |
//! | `suite_storage` | the same storage without a host, for suites of tests |
//!
//! # Numbers and bytes
//! Times are JavaScript numbers: the latest due is below 2^53. Generations have 64 bits and are decimal
//! strings. Payloads are `Uint8Array`s. A name is stored as its UTF-8: it comes in
//! as a string and goes out as bytes.
//!
//! # Traps
//! A panic is a trap: the instance of the module is lost with every future in it. Each call into the
//! module, and each poll, is made by the host, which sees the trap, makes a new instance, and opens its
//! objects anew with `after_trap` for the one that trapped.
//!
//! # Limits
//! Built for `wasm32` only; for any other target the crate is empty.
//!
//! # Features
//! `kinds`: the built-in kinds. Without them the module is three fifths as large, so the package has both builds.
//!
//! `suite`: the storage without a host, for the suites that `dueline-objectsuite` runs inside workerd.
#![cfg(target_arch = "wasm32")]
#![allow(
    clippy::arc_with_non_send_sync,
    reason = "the core shares by Arc; this target has one thread"
)]

#[cfg(feature = "kinds")]
mod built_in;
mod clocks;
mod connection;
mod errors;
mod handler;
mod kinds;
mod literals;
mod object;
mod outcome;
mod platform;
mod records;
mod storage;
#[cfg(feature = "suite")]
mod suite_storage;
mod tasks;
mod verbs;

pub use object::ObjectCore;
#[cfg(feature = "suite")]
pub use suite_storage::SuiteStorage;

//! The one history format of Dueline's tests, as JSON lines, and a checker for each invariant.
//!
//! A test records an [`Event`] for each thing that happened. There are two levels:
//!
//! * **Engines.** [`Verb`] and [`What::Told`] are what a client asks of the engine and is told;
//!   [`Commit`] is a batch that became durable, with its rows, in the order in which they did;
//!   [`Tick`] and [`Run`] are what drivers and handlers did; starts, crashes and set clocks stand
//!   between them, and a [`Scan`] is what a store held when it was read. The commits are the truth.
//! * **Servers.** [`Operation`] and [`Answered`] are what a client asks over HTTP and is told,
//!   [`What::Call`] is what a receiver saw: nothing of what the server believes.
//!
//! [`check_all`] reads a history once and names every [`Invariant`] that it broke, and where; a test
//! that makes its history event by event has [`Checkers`]. What an invariant needs and a history does
//! not tell is not checked: the rules it is held to stand in its first event ([`EngineRules`]).
//!
//! For whoever records: [`Recorder`] is a history in memory, [`Log`] one in a file, [`Witness`] a store
//! that records what commits through it, [`Recorded`] a handler whose runs are taken down; [`keep`]
//! writes a history that broke something where its reader finds it.
//!
//! Several clients may race for one name: a commit carries the number of its request, so no search for
//! an order is needed. Over HTTP, where no commit is seen, each timer has one writer: a client sends
//! its next request about a timer only after the last one has ended.
//!
//! ```
//! use dueline_history::{Commit, Event, Invariant, Source, What, check_all};
//!
//! let at = |at_ms, what| Event { at_ms, actor: "node-1".into(), what };
//! let row = |value: Option<&'static str>| vec![("seat-12A".into(), value.map(Into::into))];
//! let write = Commit { source: Source::User, rows: row(Some("held")), ..Commit::default() };
//! let history = [
//!     at(0, What::Begin { seed: 1, deadline_ms: 0, lag_ms: 0, rules: None }),
//!     at(10, What::Commit(write)),
//!     // A request that nobody sent is said to have removed it.
//!     at(20, What::Commit(Commit { request: Some(7), rows: row(None), ..Commit::default() })),
//! ];
//! let broken = check_all(&history);
//! assert_eq!((broken[0].invariant, broken[0].at), (Invariant::I5, 2));
//! ```
//!
//! [`check`] adds what a history of a server held, because one in which nothing happens proves
//! nothing:
//!
//! ```
//! use dueline_history::{Answered, Event, Operation, What, check};
//!
//! let at = |at_ms, what| Event { at_ms, actor: "client-0".into(), what };
//! let timer = || "t".to_owned();
//! let schedule = Operation::Schedule { timer: timer(), version: 1, due_ms: 500 };
//! let history = [
//!     at(0, What::Begin { seed: 1, deadline_ms: 1_000, lag_ms: 1_000, rules: None }),
//!     at(10, What::Invoke { request: 1, operation: schedule }),
//!     at(20, What::Answer { request: 1, answered: Answered::Created }),
//! ];
//! let verdict = check(&history);
//! assert!(verdict.broken[0].text.contains("lost"), "{verdict:?}");
//! ```
#![forbid(unsafe_code)]

pub mod book;
mod check;
mod event;
mod http;
mod log;
mod octets;
mod record;
mod recorded;
mod trace;
mod witness;

pub use check::{
    Broken, Checker, Checkers, Findings, HISTORIES_PER_MARK, Invariant, Marks, Seen, check_all,
};
pub use event::{
    Answered, Budget, Commit, EffectMark, Ended, EngineRules, Event, KindCounts, LaneWake,
    ListedTimer, Occurrence, Operation, Outcome, Policy, Recurring, Retries, Run, Scan, Source,
    Tick, Told, Verb, VerbName, What,
};
pub use http::{Figures, Verdict, check};
pub use log::{Log, read};
pub use octets::Octets;
pub use record::{Recorder, keep, write};
pub use recorded::{Recorded, RunLog};
pub use trace::{Difference, first_difference, trace_hash};
pub use witness::{Marked, Witness, scan};

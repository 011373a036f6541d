//! What clients asked for, what they were told and what a receiver saw, as JSON lines; and the
//! checker that holds such a history to the promises of a timer service.
//!
//! A test that crashes a server records an [`Event`] for each thing that a client or a receiver can
//! observe, and nothing of what the server believes. [`check`] reads the whole of it and names every
//! promise that was broken. Whoever emits the same events has the same checker.
//!
//! Each timer has one writer: a client sends its next request about a timer only after the last one
//! has ended. So the checker follows each timer by itself and needs no search.
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

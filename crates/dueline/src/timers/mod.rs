//! Timers: scheduling them, firing them, and what becomes of those that fail.
//!
//! [`Timers`] has the verbs: schedule, plan, get, list, cancel, move, pause, requeue. [`Engine`] runs
//! what is due, a partition at a time ([`Engine::tick`], or [`run_due`] without a driver), through
//! the handlers of a [`Registry`].
//!
//! # What it costs
//!
//! Reads are calls of the store; a commit is one transaction, with one flush to disk where the store
//! flushes, shared with whoever else commits just then. A commit that loses its guard writes nothing
//! and flushes nothing. The figures are counted by the tests `group_costs`.
//!
//! | operation | reads | commits |
//! |---|---|---|
//! | schedule an anonymous timer, or a new name | 0 | 1 |
//! | replace a name | 0 | 2, the first of which loses |
//! | [`Policy::IfAbsent`] of a name that is there | 0 | 1, which loses |
//! | kick a pending name ([`Policy::KeepEarliest`]) | 1 | 2, the first of which loses |
//! | cancel by name | 1 | 1 |
//! | a tick of 64 due timers in one group, whatever becomes of them, wakes settled | 1 | 1 |
//! | the same in groups of 16 | 1 | 4 |
//! | the same one by one | 1 | 64 |
//! | claiming 64 detached timers | 1 | 1 |
//! | settling a detached call | 0 | 1 |
//! | a spurious wake | 1 | 1 |
//! | a timer of a cautious tick, after a crash | | 2 |
//!
//! The one read of a tick fetches the pause rows and the first page of every lane; a longer lane
//! costs one more a page. What handlers read comes on top.

mod activity;
mod budget;
mod call;
mod discovery;
mod due;
mod engine;
mod error;
mod group;
mod handle;
mod handler;
mod lane;
mod make_move;
mod malformed;
mod moves;
mod outcome;
mod overlay;
mod planned;
mod registry;
mod report;
mod retry;
mod run;
mod settle;
mod slots;
mod tick;
mod timer;
mod typed;
mod verbs;

pub use budget::{TickBudget, TickState};
pub use call::{Claim, ClaimedCall, FinishedCall};
pub use due::{DueTimer, OccurrenceId, TimerCtx};
pub use engine::{CALLS_MAX, Engine, Tick, TickRequest, run_due, run_due_with_state};
pub use error::TimerError;
pub use handle::Timers;
pub use handler::{DetachedHandler, Fired, HandlerError, TimerHandler};
pub use registry::{
    DETACHED_DEADLINE_MS, Execution, INLINE_DEADLINE_MS, Registration, Registry, RegistryError,
};
pub use report::{Counts, RunReport};
pub use retry::RetryPolicy;
pub use slots::Slots;
pub use timer::Timer;
pub use typed::{Typed, TypedDetachedHandler, TypedHandler};
pub use verbs::{
    Asked, Cancelled, Change, DeadId, DeadPage, DeadView, Explained, LANE_COUNT_MAX,
    LIST_LIMIT_MAX, LaneCount, LaneSummary, ListCursor, ListQuery, Plan, PlanGuards, Policy,
    QuarantinedPage, QuarantinedRow, Refused, RequeuedPage, ScheduleOutcome, Scheduled, SeenName,
    TimerPage, TimerState, TimerStates, TimerView, earliest_timer_put,
};

pub(crate) use timer::validate_due;
pub(crate) use verbs::{Tries, hex};

pub use crate::kind::{KindSet, TimerKind};

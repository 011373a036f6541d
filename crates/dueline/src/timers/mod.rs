//! Timers: scheduling them, firing them, and what becomes of those that fail.

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
    Cancelled, Change, DeadId, DeadPage, DeadView, Explained, LANE_COUNT_MAX, LIST_LIMIT_MAX,
    LaneCount, LaneSummary, ListCursor, ListQuery, Plan, PlanGuards, Policy, QuarantinedPage,
    QuarantinedRow, RequeuedPage, ScheduleOutcome, Scheduled, SeenName, TimerPage, TimerState,
    TimerStates, TimerView, earliest_timer_put,
};

pub use crate::kind::{KindSet, TimerKind};

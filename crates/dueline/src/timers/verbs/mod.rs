//! The verbs of [`Timers`](super::Timers): one file each, over a few shared pieces.
//!
//! * [`draft`] and [`plan`] turn a request and what is known of a name into a guarded batch,
//!   [`commit`] runs it, [`named`] reads a name and the row it points at as one;
//! * the rest are the verbs.
//!
//! Every put of a timer row is guarded by `Absent` of its key, and every change of a named timer by
//! `Equals` of its name row, which it rewrites in the same batch. So a lost guard means that another
//! writer was there, and the verb starts over.

mod cancel;
mod change;
mod commit;
mod cursor;
mod dead;
mod dead_id;
mod dead_view;
mod draft;
mod earliest;
mod fire_now;
mod get;
pub(crate) mod hex;
mod if_match;
mod kind_names;
mod lanes;
mod list;
mod moves;
mod named;
mod pause;
mod plan;
mod plan_all;
mod quarantine;
mod requeue;
mod requeue_page;
mod schedule;
mod schedule_many;
mod scheduled;
mod state;
mod view;

pub(crate) use commit::Tries;

pub use cancel::Cancelled;
pub use change::Change;
pub use cursor::ListCursor;
pub use dead_id::DeadId;
pub use dead_view::{DeadPage, DeadView};
pub use earliest::earliest_timer_put;
pub use lanes::{LANE_COUNT_MAX, LaneCount, LaneSummary};
pub use list::{LIST_LIMIT_MAX, ListQuery, TimerPage};
pub use plan::{Explained, Plan, PlanGuards, SeenName};
pub use plan_all::{Asked, Refused};
pub use quarantine::{QuarantinedPage, QuarantinedRow};
pub use requeue_page::RequeuedPage;
pub use scheduled::{Policy, ScheduleOutcome, Scheduled};
pub use state::{TimerState, TimerStates};
pub use view::TimerView;

//! Where ticks, settles and audits run: threads of their own, which may block in the store.

mod calls;
mod executor;
mod jobs;
mod pool;

pub(crate) use calls::Calls;
pub(crate) use jobs::{Began, Event, RequeueStep, TickDone, audit, release, requeue, tick};
pub(crate) use pool::{Pool, Stage};

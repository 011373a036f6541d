//! The release itself.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use dueline::store::{Precondition, StoreErrorKind};
use dueline::timers::{TickBudget, run_due};
use dueline_testkit::CommitFault;

use super::{Rig, dependencies};
use crate::Make;

/// A release decides on what it saw; if it takes too long to commit, it is planned again.
pub fn a_release_does_not_commit_late(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&dependencies(&[("p", 1)]));
    rig.show("p", "d000", true);
    let until_ms = rig.world.now_ms() + 10_000;
    let clock = rig.world.clock.clone();
    let row = rig.world.clone();
    rig.world.store.before_commit(2, move |_, _, group| {
        let bound = Precondition::NotAfter(until_ms);
        assert!(group.batches[0].preconditions.contains(&bound));
        clock.advance_ms(10_001);
        super::write(&row.store, &row.partition, "d000", "draft");
    });
    let before = rig.world.costs();
    assert_eq!(rig.tick().total.rescheduled, 1);
    assert!(!rig.is_released());
    let groups = rig.world.costs_since(&before).calls.groups;
    assert_eq!(groups, 3, "the claim, the release, the checkpoint");
}

pub fn a_release_in_doubt_happens_once(make: Make<'_>) {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let rig = Rig::new(make);
        rig.publish(&dependencies(&[("q", 1)]));
        rig.show("q", "d000", true);
        rig.world.store.fail_commit(2, fault);
        rig.tick_through_pauses();
        assert!(rig.is_released());
        assert!(rig.world.timer_keys().is_empty());
    }
}

impl Rig {
    /// A tick whose settle pauses before it offers its batch again: time passes while it does.
    fn tick_through_pauses(&self) {
        let mut tick = pin!(async {
            let budget = TickBudget::default();
            let tick = run_due(&self.engine, &self.world.partition, budget).await;
            for call in tick.calls {
                self.engine.settle(call.run().await).await;
            }
        });
        let mut context = Context::from_waker(Waker::noop());
        while tick.as_mut().poll(&mut context).is_pending() {
            self.world.let_time_pass(100);
            std::thread::yield_now();
        }
    }
}

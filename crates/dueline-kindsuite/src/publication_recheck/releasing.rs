//! The release itself.

use dueline::store::{BatchOutcome, StoreErrorKind};
use dueline_testkit::{CommitFault, block_on};

use super::{Rig, dependencies};
use crate::Make;

/// A walk that is settled late decides on what it saw too long ago.
pub fn a_release_does_not_commit_late(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&dependencies(&[]));
    let sent = std::sync::Arc::new(std::sync::Mutex::new(None));
    let caught = std::sync::Arc::clone(&sent);
    rig.world.store.before_commit(2, move |_, _, group| {
        *caught.lock().unwrap() = group.batches.first().cloned();
    });
    let lost = CommitFault::NotWritten(StoreErrorKind::Full);
    rig.world.store.fail_commit(2, lost);
    rig.tick();
    let batch = sent.lock().unwrap().take().unwrap();
    rig.world.advance_ms(10_001);
    let late = block_on(rig.world.store.inner().apply(&rig.world.partition, batch)).unwrap();
    assert!(
        matches!(late, BatchOutcome::DeadlinePassed { .. }),
        "{late:?}"
    );
    rig.look();
    assert!(rig.is_released());
}

pub fn a_release_in_doubt_happens_once(make: Make<'_>) {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let rig = Rig::new(make);
        rig.publish(&dependencies(&[("q", 1)]));
        rig.show("q", "d000", true);
        rig.tick_in_doubt(fault);
        for _ in 0..5 {
            rig.world.advance_ms(60_000);
            rig.tick();
        }
        assert!(rig.is_released());
        assert!(rig.world.timer_keys().is_empty());
    }
}

impl Rig {
    /// A tick whose settle meets this; the settle is then offered again by a sleep of the clock.
    fn tick_in_doubt(&self, fault: CommitFault) {
        use dueline::timers::{TickBudget, run_due};
        use std::future::Future;
        use std::task::{Context, Waker};
        self.world.store.fail_commit(2, fault);
        let engine = &self.engine;
        let mut whole = Box::pin(async {
            let tick = run_due(engine, &self.world.partition, TickBudget::default()).await;
            for call in tick.calls {
                engine.settle(call.run().await).await;
            }
        });
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            if whole.as_mut().poll(&mut context).is_ready() {
                return;
            }
            self.world.advance_ms(100);
        }
        panic!("the settle never ended");
    }
}

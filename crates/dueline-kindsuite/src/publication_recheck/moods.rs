//! A user's gate that errs, panics or hangs, and a process whose clock is behind.

use std::sync::{Arc, Mutex};

use dueline::BoxFuture;
use dueline::kinds::publication_recheck::{
    Dependency, Gate, Gated, GatedRecord, PublicationRecheck,
};
use dueline::store::{Batch, Key, NamespaceStore, Value};
use dueline::timers::{Engine, HandlerError, Registry, TimerCtx, TimerState, Timers};
use dueline_testkit::{ManualClock, test_runtime};

use super::{Press, Rig, dependencies};
use crate::Make;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Calm,
    GatedErrs,
    GatedPanics,
    IsVisiblePanics,
    ReleaseErrs,
    ReleasePanics,
    ReleaseHangs,
}

/// The gate of the other cases, which does as it is told.
#[derive(Clone)]
struct Moody(Arc<Mutex<Mood>>);

impl Moody {
    fn mood(&self) -> Mood {
        *self.0.lock().unwrap()
    }
}

impl Gate for Moody {
    fn state_keys(&self, record: &Key) -> Vec<Key> {
        Press.state_keys(record)
    }

    fn gated(&self, record: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
        match self.mood() {
            Mood::GatedErrs => Err(HandlerError::new("told to")),
            Mood::GatedPanics => panic!("told to"),
            _ => Press.gated(record),
        }
    }

    fn is_visible(&self, dependency: &Dependency, row: Option<&Value>) -> bool {
        assert_ne!(self.mood(), Mood::IsVisiblePanics, "told to");
        Press.is_visible(dependency, row)
    }

    fn release<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        record: &'a GatedRecord,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        Box::pin(async move {
            match self.mood() {
                Mood::ReleaseErrs => Err(HandlerError::new("told to")),
                Mood::ReleasePanics => panic!("told to"),
                Mood::ReleaseHangs => std::future::pending().await,
                _ => Press.release(ctx, record).await,
            }
        })
    }
}

/// Whatever the application's gate does: the cursor stays, the timer backs off, and the record is released
/// when the gate is sound again.
fn loses_nothing(make: Make<'_>, moods: &[Mood]) {
    let mut rig = Rig::new(make);
    let mood = Arc::new(Mutex::new(Mood::Calm));
    let timers = rig.world.timers.clone();
    let gate = PublicationRecheck::new(Moody(Arc::clone(&mood)), timers);
    rig.engine = rig.world.engine_of([gate.entry()]);
    let of = dependencies(&[("p", 1), ("q", 9)]);
    rig.publish(&of);
    for (partition, key) in &of[..9] {
        rig.show(partition, key, true);
    }
    rig.tick();
    assert_eq!(rig.position(), Some(8));
    rig.show("q", "d008", true);
    for how in moods.iter().copied() {
        *mood.lock().unwrap() = how;
        rig.world.advance_ms(60_000);
        let counts = rig.world.tick_as_time_passes(&rig.engine, 5_000);
        assert_eq!((counts.failed, counts.dead), (1, 0), "{how:?}");
        assert_eq!(rig.timer().unwrap().state, TimerState::Retrying, "{how:?}");
        assert_eq!(rig.position(), Some(8), "{how:?}");
        assert!(!rig.is_released());
    }
    *mood.lock().unwrap() = Mood::Calm;
    rig.world.advance_ms(60_000);
    rig.tick();
    assert!(rig.is_released());
}

pub fn a_gate_that_errs_or_hangs_loses_nothing(make: Make<'_>) {
    loses_nothing(
        make,
        &[Mood::GatedErrs, Mood::ReleaseErrs, Mood::ReleaseHangs],
    );
}

pub fn a_gate_that_panics_loses_nothing(make: Make<'_>) {
    let panics = [
        Mood::GatedPanics,
        Mood::IsVisiblePanics,
        Mood::ReleasePanics,
    ];
    loses_nothing(make, &panics);
}

/// A process that is too far behind the store has no look that counts, and loses nothing by it.
pub fn a_process_that_is_far_behind_waits_for_its_clock(make: Make<'_>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 9)]);
    rig.publish(&of);
    for (partition, key) in &of {
        rig.show(partition, key, true);
    }
    let start_ms = i64::try_from(rig.world.now_ms()).unwrap();
    let clock = ManualClock::new(start_ms);
    let runtime = test_runtime(&clock);
    let timers = Timers::new(rig.world.shared(), runtime.clone());
    let (kind, gate) = PublicationRecheck::new(Press, timers).entry();
    let registry = Registry::new().with(kind, gate).unwrap();
    let store: Arc<dyn NamespaceStore> = rig.world.shared();
    let behind = Engine::new(store, runtime, registry);
    rig.world.advance_ms(10_001);
    let counts = rig.world.tick(&behind).total;
    assert_eq!((counts.fired, counts.failed), (0, 1), "{counts:?}");
    assert!(!rig.is_released());
    clock.advance_ms(70_000);
    rig.world.advance_ms(70_000);
    clock.advance_ms(10_001);
    rig.world.tick(&behind);
    assert!(rig.is_released());
}

//! Goal: a file system without room kills no timer: what is due waits, keeps its attempts, and fires
//! once there is room.
//! Method: a small file system of its own, filled to the last page; an engine ticks by the stored
//! wakes while an injected clock goes on.
#![cfg(test)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its child process speaks on its standard output"
)]

mod support;

use std::path::PathBuf;
use std::sync::Arc;

use dueline::store::{Batch, LaneWake, NamespaceStore, StoreErrorKind, WakeStore};
use dueline::timers::{
    Engine, Fired, Policy, Registration, Registry, Tick, TickBudget, TickRequest, Timer,
};
use dueline_sqlite::{Options, SqliteStore};
use dueline_testkit::{ManualClock, handler, test_runtime};
use support::{KIND, block_on, block_on_parking, get, in_namespace, partition};

const TIMERS: usize = 10;
/// Full for this many ticks: more than the 20 attempts after which a failing timer is dead.
const FULL_TICKS: usize = 30;
/// Longer than any back-off, so that every tick finds every timer due.
const BETWEEN_TICKS_MS: u64 = 800_000;

#[test]
fn timers_due_on_a_full_file_system_fire_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let small = "mount -t tmpfs -o size=8m tmpfs \"$FOLDER\"";
    in_namespace(small, "child_whose_timers_find_no_room", folder.path());
}

struct Rig {
    clock: ManualClock,
    store: SqliteStore,
    blocking: Arc<dyn WakeStore>,
    engine: Engine,
}

impl Rig {
    fn open(path: PathBuf) -> Self {
        let clock = ManualClock::new(1_000_000);
        let options = Options::new(Arc::new(clock.clone()));
        let store = SqliteStore::open(path, options).unwrap();
        let blocking = store.for_blocking_threads().unwrap();
        let grows = Registration::inline(handler(|_, timer| {
            let effect = Batch::new().put(timer.reference().clone(), vec![7; 100_000]);
            Box::pin(async { Ok(Fired::Done(effect)) })
        }));
        let registry = Registry::new().with(KIND, grows.group_max(4)).unwrap();
        let of_engine: Arc<dyn NamespaceStore> = blocking.clone();
        Self {
            engine: Engine::new(of_engine, test_runtime(&clock), registry),
            clock,
            store,
            blocking,
        }
    }

    /// One tick over the lanes whose wakes are due.
    fn tick(&self) -> Tick {
        let (a, now_ms) = (partition("a"), self.engine.runtime().now_ms());
        let kinds = self.engine.registry().kinds();
        let due = block_on(self.blocking.due_wakes(&kinds, now_ms, None, 100)).unwrap();
        let served: Vec<LaneWake> = due
            .wakes
            .iter()
            .map(|wake| LaneWake {
                kind: wake.kind,
                at_ms: wake.at_ms,
            })
            .collect();
        let request = TickRequest {
            partition: &a,
            wakes: Some(&served),
            cautious_until_ms: None,
        };
        let mut state = self.engine.start_tick(TickBudget::native());
        block_on_parking(&*self.blocking, self.engine.tick(request, &mut state))
    }

    /// Rows of 2,000 bytes until there is no room for another.
    fn fill(&self) {
        for row in 0.. {
            let batch = Batch::new().put(format!("row-{row:06}"), vec![7; 2_000]);
            if let Err(error) = block_on(self.store.apply(&partition("a"), batch)) {
                assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
                assert!(row > 100, "{row}");
                return;
            }
        }
    }

    fn effects(&self) -> usize {
        let name = |number: &usize| format!("t{number}");
        let has_effect =
            |number: &usize| get(&self.store, &partition("a"), &name(number)).is_some();
        (0..TIMERS).filter(has_effect).count()
    }
}

/// Does nothing unless another test starts it as a process of its own.
#[test]
fn child_whose_timers_find_no_room() {
    let Some(folder) = std::env::var_os("FOLDER").map(PathBuf::from) else {
        return;
    };
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 5 << 20]).unwrap();
    let rig = Rig::open(folder.join("timers.db"));
    let (a, timers) = (partition("a"), rig.engine.timers());
    for number in 0..TIMERS {
        let timer = Timer::new(KIND, format!("t{number}")).due_at(1_000_000);
        block_on_parking(
            &*rig.blocking,
            timers.schedule(&a, timer.named(), Policy::Replace),
        )
        .unwrap();
    }
    rig.fill();
    for round in 0..FULL_TICKS {
        let report = rig.tick().report;
        assert_eq!(
            (report.total.fired, report.total.dead),
            (0, 0),
            "{report:?}"
        );
        assert!(
            report.held_back || report.total.failed > 0,
            "{round}: {report:?}"
        );
        rig.clock.advance_ms(BETWEEN_TICKS_MS);
    }
    assert_eq!(rig.effects(), 0);
    for number in 0..TIMERS {
        let view = block_on(timers.get(&a, KIND, &format!("t{number}").into())).unwrap();
        let view = view.expect("it is pending");
        assert_eq!(view.attempt, 0, "a full disk is nothing a timer has done");
    }

    std::fs::remove_file(&ballast).unwrap();
    let mut fired = 0;
    for _ in 0..4 {
        let report = rig.tick().report;
        fired += report.total.fired;
        assert_eq!(report.total.dead, 0, "{report:?}");
        rig.clock.advance_ms(BETWEEN_TICKS_MS);
    }
    assert_eq!((fired, rig.effects()), (TIMERS as u64, TIMERS));
    assert_eq!(rig.tick().report.total.progressed(), 0, "none fires twice");
}

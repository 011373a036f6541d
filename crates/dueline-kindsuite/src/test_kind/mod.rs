//! Timers that fail on demand.

use std::sync::Arc;

use dueline::kinds::test_kind::{Fault, Script, TEST_KIND, TestKind, successes};
use dueline::store::StoreErrorKind;
use dueline::timers::{Counts, Engine, Registration, RetryPolicy, Timer};
use dueline_testkit::{CommitFault, block_on};

use crate::{Make, World};

const FORMAT: &str = include_str!("../../../../FORMAT.md");

struct Rig {
    world: World,
    engine: Engine,
}

/// The retries that are tested: three attempts, a second apart, without jitter.
fn policy() -> RetryPolicy {
    RetryPolicy {
        attempts_max: Some(3),
        initial_ms: 1_000,
        max_ms: 1_000,
        jitter_percent: 0,
    }
}

impl Rig {
    fn new(make: Make<'_>, configure: impl FnOnce(&World, TestKind) -> Registration) -> Self {
        let world = World::new(make);
        let registration = configure(&world, TestKind::new()).retry(policy());
        let engine = world.engine(TEST_KIND, registration);
        Self { world, engine }
    }

    fn schedule(&self, script: &Script) {
        let timer = script.timer("t").due_at(self.world.now_ms()).named();
        let plan = self.world.timers.plan_new(&timer).unwrap();
        self.world.commit(plan.batch);
    }

    /// What a tick did, and a second after it.
    fn tick(&self) -> Counts {
        let counts = self.world.tick(&self.engine).total;
        self.world.advance_ms(1_000);
        counts
    }

    /// A tick whose runs hang: whenever something sleeps, time passes.
    fn tick_as_time_passes(&self) -> Counts {
        self.world.tick_as_time_passes(&self.engine, 30_000)
    }

    fn successes(&self) -> u64 {
        let store = self.world.store.inner();
        block_on(successes(store.as_ref(), &self.world.partition, "t")).unwrap()
    }

    fn is_dead(&self) -> bool {
        let dead = self
            .world
            .timers
            .dead(&self.world.partition, Some(TEST_KIND), None, 10);
        !block_on(dead).unwrap().dead.is_empty()
    }
}

/// Each way of running, for a fault that both have.
fn both_ways() -> [fn(&World, TestKind) -> Registration; 2] {
    [|_, kind| kind.inline(), |_, kind| kind.detached()]
}

fn failed(failed: u64) -> Counts {
    Counts {
        failed,
        ..Counts::default()
    }
}

fn uncounted(counts: Counts) -> Counts {
    Counts {
        claimed: 0,
        ..counts
    }
}

pub fn a_timer_without_faults_succeeds_once(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(&Script::new());
        assert_eq!(rig.tick().fired, 1);
        assert_eq!(rig.tick().progressed(), 0);
        assert_eq!(rig.successes(), 1);
    }
}

/// Two runs fail, the third succeeds: the policy has three.
pub fn so_many_failures_come_before_success(make: Make<'_>) {
    let faults = [
        Fault::Error,
        Fault::TooManyOps,
        Fault::TooManyBytes,
        Fault::TouchesItself,
        Fault::Retry(1_000),
    ];
    for fault in faults {
        fails_twice(make, fault);
    }
}

/// The same where a target unwinds.
pub fn a_panic_is_a_failure(make: Make<'_>) {
    fails_twice(make, Fault::Panic);
}

fn fails_twice(make: Make<'_>, fault: Fault) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(&Script::new().then(fault, 2));
        assert_eq!(uncounted(rig.tick()), failed(1), "{fault:?}");
        assert_eq!(uncounted(rig.tick()), failed(1), "{fault:?}");
        assert_eq!(rig.successes(), 0);
        assert_eq!(rig.tick().fired, 1, "{fault:?}");
        assert_eq!(rig.successes(), 1);
    }
}

pub fn as_many_failures_as_attempts_end_in_the_dead_class(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(
            &Script::new()
                .then(Fault::Error, 1)
                .then(Fault::TooManyOps, 2),
        );
        assert_eq!((rig.tick().failed, rig.tick().failed), (1, 1));
        assert_eq!(rig.tick().dead, 1);
        assert!(rig.is_dead());
        assert_eq!(rig.successes(), 0);
    }
}

/// Its attempts are back, and its script goes on: the fourth run succeeds.
pub fn a_requeued_timer_goes_on_in_its_script(make: Make<'_>) {
    let rig = Rig::new(make, |_, kind| kind.inline());
    rig.schedule(&Script::new().then(Fault::Error, 3));
    let ticks = [rig.tick(), rig.tick(), rig.tick()];
    assert_eq!(ticks[2].dead, 1);
    let (timers, partition) = (&rig.world.timers, &rig.world.partition);
    let dead = block_on(timers.dead(partition, Some(TEST_KIND), None, 10)).unwrap();
    let requeued = block_on(timers.requeue(partition, &dead.dead[0].id)).unwrap();
    assert!(requeued.is_some());
    assert_eq!(rig.tick().fired, 1);
    assert_eq!(rig.successes(), 1);
}

/// Attempts that are stored tell a new process where the script stands.
pub fn a_script_goes_on_in_another_process(make: Make<'_>) {
    let rig = Rig::new(make, |_, kind| kind.inline());
    rig.schedule(&Script::new().then(Fault::Error, 2));
    rig.tick();
    let other = TestKind::new().inline().retry(policy());
    let engine = rig.world.engine(TEST_KIND, other);
    assert_eq!(rig.world.tick(&engine).total.failed, 1);
    rig.world.advance_ms(1_000);
    assert_eq!(rig.world.tick(&engine).total.fired, 1);
}

/// More runs than the policy has attempts, and none is counted.
pub fn an_uncharged_failure_never_ends_in_the_dead_class(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(&Script::new().then(Fault::Uncharged, 5));
        for _ in 0..5 {
            assert_eq!(rig.tick().failed, 1);
        }
        assert_eq!(rig.tick().fired, 1);
        assert_eq!(rig.successes(), 1);
    }
}

/// Three lost guards are planned again in the same tick; the fourth is a failure.
pub fn a_lost_guard_is_planned_again(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(&Script::new().then(Fault::LostGuard, 3));
        assert_eq!(rig.tick().fired, 1);
        assert_eq!(rig.successes(), 1);

        let rig = Rig::new(make, way);
        rig.schedule(&Script::new().then(Fault::LostGuard, 4));
        assert_eq!(rig.tick().failed, 1);
        assert_eq!(rig.tick().fired, 1);
    }
}

/// A fault of a settling that is planned again is met there.
pub fn another_fault_may_come_behind_a_lost_guard(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        let script = Script::new().then(Fault::LostGuard, 1);
        rig.schedule(&script.then(Fault::Error, 1));
        assert_eq!(rig.tick().failed, 1);
        assert_eq!(rig.successes(), 0);
    }
}

pub fn a_hanging_run_is_dropped_at_its_deadline(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(&Script::new().then(Fault::Hang, 1));
        assert_eq!(uncounted(rig.tick_as_time_passes()), failed(1));
        rig.world.advance_ms(1_000);
        assert_eq!(rig.tick().fired, 1);
    }
}

/// The store is told when to lose its answer; whether it has written or not, there is one success.
pub fn an_unknown_outcome_is_settled(make: Make<'_>) {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let rig = Rig::new(make, |world, kind| {
            let store = Arc::clone(&world.store);
            let kind = kind.on_unknown_outcome(move |_| store.fail_commit(1, fault));
            kind.inline()
        });
        rig.schedule(&Script::new().then(Fault::UnknownOutcome, 1));
        rig.tick();
        rig.tick();
        assert_eq!(rig.successes(), 1, "{fault:?}");
        assert_eq!(rig.tick().progressed(), 0);
    }
    let rig = Rig::new(make, |_, kind| kind.inline());
    rig.schedule(&Script::new().then(Fault::UnknownOutcome, 1));
    assert_eq!(rig.tick().failed, 1, "no store is told");
}

pub fn a_timer_can_be_given_up_or_undecodable(make: Make<'_>) {
    for way in both_ways() {
        for fault in [Fault::Dead, Fault::Undecodable] {
            let rig = Rig::new(make, way);
            rig.schedule(&Script::new().then(fault, 1));
            assert_eq!(rig.tick().dead, 1);
            assert!(rig.is_dead());
        }
        for payload in ["", "\u{2}", "\u{1}\u{1}", "\u{1}\u{e}\0\0\0\0\0\0\0\0\0\0"] {
            let rig = Rig::new(make, way);
            let timer = Timer::new(TEST_KIND, "t").payload(payload);
            rig.world
                .commit(rig.world.timers.plan_new(&timer).unwrap().batch);
            assert_eq!(rig.tick().dead, 1, "{payload:?}");
        }
    }
}

/// Scheduled again into the past a timer runs in the next tick, not in the same.
pub fn a_reschedule_into_the_past_runs_in_the_next_tick(make: Make<'_>) {
    for way in both_ways() {
        let rig = Rig::new(make, way);
        rig.schedule(&Script::new().then(Fault::PastReschedule, 2));
        assert_eq!(rig.tick().rescheduled, 1);
        assert_eq!(rig.tick().rescheduled, 1);
        assert_eq!(rig.tick().fired, 1);
        assert_eq!(rig.successes(), 1);
    }
}

/// The payload is the one that FORMAT.md shows.
pub fn the_script_is_that_of_the_format(_: Make<'_>) {
    let script = Script::new()
        .then(Fault::Error, 2)
        .then(Fault::Retry(60_000), 1);
    let bytes: String = script
        .payload()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let shown: String = FORMAT.split_whitespace().collect();
    assert!(
        shown.contains(&format!("payload{bytes}")),
        "payload {bytes}"
    );
}

/// The row of a success is the one that FORMAT.md shows.
pub fn the_rows_are_those_of_the_format(make: Make<'_>) {
    let rig = Rig::new(make, |_, kind| kind.inline());
    rig.schedule(&Script::new());
    rig.tick();
    let (key, value) = rig.world.kind_rows().remove(0);
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let shown: String = FORMAT.split_whitespace().collect();
    let row = format!("key{}value{}", hex(&key), hex(&value));
    assert!(shown.contains(&row), "{row}");
}

//! Charging and rolling up.

use dueline::store::{Batch, BatchOutcome, NamespaceStore, Precondition, WakeStore};
use dueline_testkit::{CommitFault, block_on};

use dueline::store::StoreErrorKind;

use super::{COORDINATOR, HOUR_MS, PERIOD_MS, Rig, amounts_row, key, write};
use crate::Make;

const SHARDS: [&str; 4] = ["s1", "s2", "s3", "s4"];

pub fn shards_converge(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    for (shard, ops) in SHARDS.into_iter().zip(1..) {
        rig.charge(shard, [ops, 100 * ops]);
        rig.charge(shard, [1]);
    }
    assert_eq!(rig.total(window), None, "nothing was rolled up");
    rig.world.advance_ms(PERIOD_MS);
    for shard in SHARDS {
        assert_eq!(rig.tick(shard).total.rescheduled, 1, "{shard}");
    }
    assert_eq!(rig.total(window), Some([14, 1_000, 0, 0]));
    rig.run_for(&SHARDS, PERIOD_MS);
    for shard in SHARDS {
        let usage = block_on(rig.quotas.usage(&rig.at(shard).partition)).unwrap();
        assert_eq!(usage.total.as_array(), [14, 1_000, 0, 0], "{shard}");
    }
    rig.charge("s2", [5, 0, 7]);
    rig.run_for(&SHARDS, PERIOD_MS);
    assert_eq!(rig.total(window), Some([19, 1_000, 7, 0]));
    assert_eq!(rig.told(), super::Told::default());
}

pub fn a_crash_between_the_two_commits_adds_nothing(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [3, 30]);
    rig.charge("s2", [4, 40]);
    rig.world.advance_ms(PERIOD_MS);
    rig.tick("s2");
    for _ in 0..2 {
        assert_eq!(rig.tick_and_crash("s1"), 1);
        assert_eq!(rig.total(rig.window()), Some([7, 70, 0, 0]));
        // When the claim of a run that was cut has ended, the timer runs again.
        rig.world.advance_ms(40_000);
    }
    rig.run_for(&["s1", "s2"], 3 * PERIOD_MS);
    assert_eq!(rig.total(rig.window()), Some([7, 70, 0, 0]));
}

pub fn an_absorption_in_doubt_adds_nothing(make: Make<'_>) {
    for fault in [
        CommitFault::AnswerLost,
        CommitFault::NotWritten(StoreErrorKind::Unknown),
    ] {
        let rig = Rig::new(make);
        rig.charge("s1", [3]);
        rig.world.advance_ms(PERIOD_MS);
        rig.world.store.fail_commit(2, fault);
        assert_eq!(rig.tick("s1").total.rescheduled, 1);
        assert_eq!(rig.total(rig.window()), Some([3, 0, 0, 0]));
        assert_eq!(rig.told().backed_off, []);
    }
}

/// An absorption whose outcome was not known may still be on its way when the window has closed.
pub fn an_absorption_that_is_very_late_brings_nothing_back(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [3]);
    let window = rig.window();
    let coordinator = rig.at(COORDINATOR).partition;
    let sent = std::sync::Arc::new(std::sync::Mutex::new(None));
    let caught = std::sync::Arc::clone(&sent);
    rig.world.advance_ms(PERIOD_MS);
    rig.world.store.before_commit(2, move |_, _, group| {
        *caught.lock().unwrap() = group.batches.first().cloned();
    });
    let unknown = CommitFault::NotWritten(StoreErrorKind::Unknown);
    rig.world.store.fail_commit(2, unknown);
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    rig.run_for(&["s1"], super::OVER_MS);
    rig.assert_gone(&["s1", COORDINATOR]);
    let batch: Batch = sent.lock().unwrap().take().unwrap();
    let late = block_on(rig.world.store.apply(&coordinator, batch)).unwrap();
    assert!(matches!(late, BatchOutcome::DeadlinePassed { .. }));
    assert_eq!(rig.total(window), None);
}

pub fn a_hot_writer_never_makes_a_roll_up_start_over(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [1]);
    rig.world.advance_ms(PERIOD_MS);
    let window = rig.window();
    for nth in 1..=3 {
        // What another writer charges before the claim, the absorption, the settle.
        rig.world
            .store
            .before_commit(nth, move |store: &dyn WakeStore, _, _| {
                let shard = dueline::store::Partition::new("s1").unwrap();
                let charged = amounts_row([10 * nth, 0, 0, 0]);
                let batch = Batch::new().put(key(b'u', window, ""), charged);
                assert!(block_on(store.apply(&shard, batch)).unwrap().is_committed());
            });
    }
    let before = rig.world.costs();
    assert_eq!(rig.tick("s1").total.rescheduled, 1);
    let costs = rig.world.costs_since(&before).calls;
    assert_eq!(
        (costs.applies, costs.groups),
        (1, 2),
        "absorbed once, settled once: {costs:?}"
    );
    rig.run_for(&["s1"], PERIOD_MS);
    assert_eq!(rig.total(window), Some([30, 0, 0, 0]));
}

pub fn charges_of_the_coordinator_itself_stay_in_the_total(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge(COORDINATOR, [5, 50]);
    assert_eq!(rig.total(window), Some([5, 50, 0, 0]), "at once");
    rig.charge("s1", [2, 20]);
    rig.run_for(&["s1", COORDINATOR], 2 * PERIOD_MS);
    assert_eq!(rig.total(window), Some([7, 70, 0, 0]));
    rig.charge(COORDINATOR, [1]);
    rig.run_for(&["s1", COORDINATOR], 2 * PERIOD_MS);
    assert_eq!(rig.total(window), Some([8, 70, 0, 0]));
    let usage = block_on(rig.quotas.usage(&rig.at("s1").partition)).unwrap();
    assert_eq!(
        (usage.local.as_array(), usage.total.as_array()),
        ([2, 20, 0, 0], [8, 70, 0, 0])
    );
}

pub fn a_counter_that_has_decreased_is_taken_as_it_is(make: Make<'_>) {
    let rig = Rig::new(make);
    let window = rig.window();
    rig.charge("s1", [10, 100]);
    rig.charge("s2", [1, 1]);
    rig.run_for(&["s1", "s2"], PERIOD_MS);
    write(
        &rig.at("s1"),
        key(b'u', window, ""),
        Some(amounts_row([4, 120, 0, 0])),
    );
    // It is metered though the answer of the coordinator is lost.
    rig.world.advance_ms(PERIOD_MS);
    rig.world.store.fail_commit(2, CommitFault::AnswerLost);
    rig.tick("s1");
    rig.run_for(&["s1", "s2"], PERIOD_MS);
    assert_eq!(rig.total(window), Some([5, 121, 0, 0]));
    let was = [10, 100].into();
    assert_eq!(rig.told().rebaselined, [(was, [4, 120].into())]);
    rig.run_for(&["s1", "s2"], 3 * PERIOD_MS);
    assert_eq!(rig.told().rebaselined.len(), 1, "once");
}

pub fn a_charge_rides_along_and_guards_what_it_read(make: Make<'_>) {
    let rig = Rig::new(make);
    let shard = rig.at("s1");
    let plan = || {
        let plan = rig.quotas.plan_charge(&*shard.store, &shard.partition, [1]);
        block_on(plan).unwrap().batch
    };
    let (first, second) = (plan(), plan());
    shard.commit(
        Batch::new()
            .require_absent("row")
            .put("row", "1")
            .append(first),
    );
    assert_eq!(shard.timer_keys().len(), 1);
    let lost = shard.apply(Batch::new().put("row", "2").append(second));
    assert!(!lost.is_committed());
    assert_eq!(shard.get(&"row".into()), Some("1".into()));
    shard.commit(Batch::new().put("row", "2").append(plan()));
    assert_eq!(shard.timer_keys().len(), 1, "the window has its timer");
    let usage = block_on(rig.quotas.usage(&shard.partition)).unwrap();
    assert_eq!(usage.local.as_array(), [2, 0, 0, 0]);
}

pub fn a_charge_of_nothing_writes_nothing(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [0, 0]);
    rig.assert_gone(&["s1"]);
}

pub fn a_counter_never_wraps(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.charge("s1", [u64::MAX - 1, 1]);
    let shard = rig.at("s1").partition;
    let much = block_on(rig.quotas.charge(&shard, [2, 2]));
    assert!(matches!(much, Err(dueline::timers::TimerError::Invalid(_))));
    rig.charge("s1", [1]);
    rig.charge("s2", [7]);
    rig.run_for(&["s1", "s2"], PERIOD_MS);
    assert_eq!(rig.total(rig.window()), Some([u64::MAX, 1, 0, 0]));
}

/// A charge that is slower than the window's grace would be charged to rows that nobody rolls up.
/// Two plans of one reading would count as one.
pub fn two_charges_of_a_quota_are_not_one_batch(make: Make<'_>) {
    let rig = Rig::new(make);
    for partition in ["s1", COORDINATOR] {
        let at = rig.at(partition);
        let plan = || block_on(rig.quotas.plan_charge(&*at.store, &at.partition, [1]));
        for _ in 0..2 {
            let both = plan().unwrap().batch.append(plan().unwrap().batch);
            let refused = block_on(at.store.apply(&at.partition, both)).unwrap_err();
            assert_eq!(refused.kind(), StoreErrorKind::Invalid, "{refused}");
            rig.charge(partition, [1]);
        }
        let usage = block_on(rig.quotas.usage(&at.partition)).unwrap();
        assert_eq!(usage.local.as_array(), [2, 0, 0, 0]);
    }
}

pub fn a_charge_does_not_commit_behind_its_window(make: Make<'_>) {
    let rig = Rig::new(make);
    let shard = rig.at("s1");
    let plan = rig.quotas.plan_charge(&*shard.store, &shard.partition, [1]);
    let slow = block_on(plan).unwrap().batch;
    let until_ms = rig.window().end_ms() + 5_000;
    assert_eq!(slow.preconditions[0], Precondition::NotAfter(until_ms));
    rig.world.advance_ms(HOUR_MS + 5_001);
    assert!(matches!(
        shard.apply(slow),
        BatchOutcome::DeadlinePassed { .. }
    ));
    rig.charge("s1", [1]);
    assert_eq!(rig.window().start_ms, rig.world.now_ms() - 5_001);
}

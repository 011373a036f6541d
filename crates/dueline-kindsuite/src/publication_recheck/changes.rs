//! What makes a walk start over, and what makes a commit lose.

use dueline::store::{Batch, Key};
use dueline_testkit::block_on;

use super::{RECORD, Rig, dependencies, record, write};
use crate::Make;

/// A record that has walked over 16 of 17, the last missing.
fn blocked(make: Make<'_>) -> (Rig, Vec<(String, String)>) {
    let rig = Rig::new(make);
    let of = dependencies(&[("q", 17)]);
    rig.set_state("1|a|");
    rig.publish(&of);
    for (partition, key) in &of[..16] {
        rig.show(partition, key, true);
    }
    assert_eq!(rig.look(), 3);
    assert_eq!(rig.position(), Some(16));
    (rig, of)
}

pub fn a_new_generation_starts_over(make: Make<'_>) {
    let (rig, _) = blocked(make);
    rig.set_state("2|a|");
    assert_eq!(rig.look(), 3);
}

pub fn other_obligations_start_over(make: Make<'_>) {
    let (rig, _) = blocked(make);
    rig.set_state("1|b|");
    assert_eq!(rig.look(), 3);
}

pub fn other_dependencies_start_over(make: Make<'_>) {
    let (rig, mut of) = blocked(make);
    of.push(("q".to_owned(), "a".to_owned()));
    rig.show("q", "d016", true);
    rig.world.commit(record(&of));
    assert_eq!(rig.look(), 1, "from the new first on");
    assert_eq!(rig.position(), Some(0));
    assert!(!rig.is_released());
}

pub fn what_was_withdrawn_before_a_change_is_seen_after_it(make: Make<'_>) {
    let (rig, _) = blocked(make);
    rig.show("q", "d003", false);
    rig.show("q", "d016", true);
    rig.set_state("2|a|");
    rig.look();
    assert!(!rig.is_released());
    assert_eq!(rig.position(), Some(3));
}

pub fn an_open_obligation_holds_everything(make: Make<'_>) {
    let (rig, _) = blocked(make);
    rig.show("q", "d016", true);
    rig.set_state("1|a|open");
    for _ in 0..3 {
        assert_eq!(rig.look(), 0, "nothing is read elsewhere");
        assert_eq!(rig.position(), Some(0), "and nothing is waived");
        assert!(!rig.is_released());
    }
    rig.set_state("1|a|");
    assert_eq!(rig.look(), 3);
    assert!(rig.is_released());
}

/// Changes a row before the n-th commit from now and before the next three, at which the settle is planned
/// again.
fn race(rig: &Rig, nth: u64, key: &'static str, row: &'static str) {
    for nth in nth..nth + 4 {
        rig.world.store.before_commit(nth, move |store, of, _| {
            let batch = Batch::new().put(key, format!("{row}{nth}|a|"));
            let done = block_on(store.apply(of, batch)).unwrap();
            assert!(done.is_committed());
        });
    }
}

pub fn a_checkpoint_loses_to_a_change(make: Make<'_>) {
    let (rig, of) = blocked(make);
    let payload = rig.timer().unwrap().payload;
    rig.world.advance_ms(5_000);
    // The claim is the first commit; the checkpoint the second.
    race(&rig, 2, super::STATE, "1");
    assert_eq!(rig.tick().total.failed, 1);
    let timer = rig.timer().unwrap();
    assert_eq!(timer.payload, payload, "the cursor is kept");
    assert!(
        timer.next_at_ms >= rig.world.now_ms() + 5_000,
        "it backs off"
    );
    for (partition, key) in &of {
        rig.show(partition, key, true);
    }
    assert_eq!(rig.look(), 3, "another generation");
    assert!(rig.is_released());
}

pub fn a_release_loses_to_a_change(make: Make<'_>) {
    for (key, row) in [(super::STATE, "1"), (RECORD, "q x ")] {
        let (rig, _) = blocked(make);
        let payload = rig.timer().unwrap().payload;
        rig.show("q", "d016", true);
        rig.world.advance_ms(5_000);
        race(&rig, 2, key, row);
        assert_eq!(rig.tick().total.failed, 1);
        assert!(!rig.is_released());
        assert_eq!(rig.timer().unwrap().payload, payload);
    }
}

/// A local dependency that is withdrawn between the look and the commit.
pub fn a_release_loses_to_a_withdrawal_at_home(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&dependencies(&[("p", 20)]));
    for (partition, key) in dependencies(&[("p", 20)]) {
        rig.show(&partition, &key, true);
    }
    rig.world.store.before_commit(2, |store, of, _| {
        let batch = Batch::new().put("d019", "draft");
        assert!(block_on(store.apply(of, batch)).unwrap().is_committed());
    });
    assert_eq!(rig.look(), 0);
    assert!(
        !rig.is_released(),
        "the settle was planned again, and saw it"
    );
    rig.show("p", "d019", true);
    rig.look();
    assert!(rig.is_released());
}

/// A record that is published anew while it is being looked at is looked at anew.
pub fn a_new_publication_takes_the_run_its_effect(make: Make<'_>) {
    let (rig, of) = blocked(make);
    rig.show("q", "d016", true);
    rig.world.advance_ms(5_000);
    let (rechecks, partition) = (rig.rechecks.clone(), rig.world.partition.clone());
    let anew = record(&of);
    rig.world.store.before_commit(2, move |store, _, _| {
        let plan = block_on(rechecks.plan(&partition, &RECORD.into())).unwrap();
        let done = block_on(store.apply(&partition, anew.append(plan.batch))).unwrap();
        assert!(done.is_committed());
    });
    assert_eq!(rig.tick().total.raced, 1);
    assert!(!rig.is_released());
    assert_eq!(rig.position(), None, "from the beginning");
    assert_eq!(rig.world.timer_keys().len(), 1, "and one timer");
    assert_eq!(rig.look(), 3);
    assert!(rig.is_released());
}

pub fn a_record_that_is_gone_takes_its_timer_along(make: Make<'_>) {
    let (rig, _) = blocked(make);
    rig.world.commit(Batch::new().delete(RECORD));
    assert_eq!(rig.look(), 0);
    assert!(rig.world.timer_keys().is_empty());
}

pub fn a_record_has_one_timer(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.publish(&dependencies(&[("q", 1)]));
    let second = rig.rechecks.plan_new(&RECORD.into()).unwrap();
    assert!(!rig.world.apply(second.batch).is_committed());
    let key = Key::from_static(RECORD.as_bytes());
    let plan = block_on(rig.rechecks.plan(&rig.world.partition, &key));
    rig.world.commit(plan.unwrap().batch);
    assert_eq!(rig.world.timer_keys().len(), 1);
    write(&rig.world.store, &rig.world.partition, "other", "row");
}

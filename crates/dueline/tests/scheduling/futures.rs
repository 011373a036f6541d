//! The futures of the verbs move between threads, so that servers can spawn them.

use dueline::timers::{Change, ListQuery, Policy, Timer};

use super::fixture::{KIND, World, reference_of};

fn assert_send<T: Send>(future: T) {
    drop(future);
}

#[test]
fn every_verb_can_be_spawned() {
    let world = World::new();
    let (timers, partition) = (&world.timers, &world.partition);
    let (timer, reference) = (Timer::new(KIND, "a").named(), reference_of("a"));
    let query = ListQuery::new(KIND);
    assert_send(timers.schedule(partition, timer.clone(), Policy::Replace));
    assert_send(timers.schedule_if_match(partition, timer.clone(), 1));
    assert_send(timers.schedule_many(partition, vec![(timer.clone(), Policy::Replace)]));
    assert_send(timers.plan(partition, &timer, Policy::Replace));
    assert_send(timers.plan_all(partition, &[]));
    assert_send(timers.get(partition, KIND, &reference));
    assert_send(timers.list(partition, &query));
    assert_send(timers.cancel(partition, KIND, &reference, None));
    assert_send(timers.cancel_unless_claimed(partition, KIND, &reference, None));
    assert_send(timers.plan_cancel(partition, KIND, &reference));
    assert_send(timers.update(partition, KIND, &reference, Change::default(), None));
    assert_send(timers.fire_now(partition, KIND, &reference));
    assert_send(timers.lanes(partition));
    assert_send(timers.pause(partition, KIND));
    assert_send(timers.resume(partition, KIND));
    assert_send(timers.dead(partition, None, None, 1));
    assert_send(timers.requeue_page(partition, None, None, 1));
    assert_send(timers.requeue_undecodable(partition, KIND, 1, None, 1));
    assert_send(timers.quarantined(partition, None, 1));
    assert_send(timers.kind_for_name(partition, "a"));
}

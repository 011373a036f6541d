//! A transactional outbox.

use dueline::kinds::outcome_delivery::{OUTCOME_DELIVERY, OutboxBuilder, OutboxName, Outcome};
use dueline::store::Batch;
use dueline_testkit::block_on;

use crate::{Make, World};

fn append(world: &World, ids: &[&'static str]) -> Batch {
    block_on(async {
        let name = OutboxName::new("mail").unwrap();
        let now_ms = world.now_ms();
        let mut outbox = OutboxBuilder::read(&*world.store, &world.partition, &name)
            .await
            .unwrap();
        for id in ids {
            let outcome = Outcome {
                id: (*id).into(),
                body: "{}".into(),
            };
            outbox.append(outcome, now_ms).unwrap();
        }
        outbox.finish(&world.timers, now_ms).unwrap()
    })
}

pub fn appending_wakes_an_empty_outbox_once(make: Make<'_>) {
    let world = World::new(make);
    world.commit(append(&world, &["one", "two"]));
    assert_eq!(world.timer_keys().len(), 1, "one timer for both");
    world.commit(append(&world, &["three"]));
    assert_eq!(world.timer_keys().len(), 1, "the outbox has its timer");
    assert_eq!(world.timer_keys()[0][2], OUTCOME_DELIVERY.0);
    assert_eq!(world.kind_rows().len(), 4, "three outcomes and the state");
}

pub fn appending_from_the_same_reading_loses(make: Make<'_>) {
    let world = World::new(make);
    let (first, second) = (append(&world, &["one"]), append(&world, &["two"]));
    world.commit(first);
    assert!(!world.apply(second).is_committed());
}

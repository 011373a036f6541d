//! Goal: what the store says of a partition is what is stored. Method: one object; a partition comes, goes, comes
//! again, and is never there because its transaction was refused; each time it is read through the store.
#![cfg(test)]

mod home;

use dueline::store::{Batch, Key, NamespaceStore, Partition, ReadStore};
use dueline::timers::Registration;
use dueline_worker::simulated::StorageCall;
use dueline_worker::{ObjectDriver, ObjectOptions, Start};
use home::handlers::{Seen, notes};
use home::{A, Home};

fn opened(home: &Home) -> ObjectDriver {
    let kinds = [(A, Registration::inline(notes(&Seen::default())))];
    home.open(kinds, Start::Fresh, ObjectOptions::default())
}

fn is_there(home: &Home, driver: &ObjectDriver, partition: &Partition) -> bool {
    let key = Key::from("row");
    let found = home.run(driver.store().get(partition, &key)).unwrap();
    found.is_some()
}

fn write(home: &Home, driver: &ObjectDriver, partition: &Partition, batch: Batch) -> bool {
    let done = home.run(driver.store().apply(partition, batch));
    done.is_ok_and(|outcome| outcome.is_committed())
}

fn put() -> Batch {
    Batch::new().put("row", "value")
}

#[test]
fn a_partition_that_comes_goes_and_comes_again_is_read_as_it_is() {
    let home = Home::new();
    let driver = opened(&home);
    let partition = &home.partition;
    assert!(!is_there(&home, &driver, partition), "before it came");
    for round in 0..3 {
        assert!(write(&home, &driver, partition, put()));
        assert!(is_there(&home, &driver, partition), "it came, {round}");
        assert!(write(&home, &driver, partition, Batch::new().delete("row")));
        assert!(!is_there(&home, &driver, partition), "it went, {round}");
    }
    // Another one has the place of the last in between.
    let other = Partition::new("other").unwrap();
    assert!(write(&home, &driver, &other, put()));
    assert!(!is_there(&home, &driver, partition));
    assert!(is_there(&home, &driver, &other));
    assert!(write(&home, &driver, partition, put()));
    assert!(is_there(&home, &driver, partition));
}

#[test]
fn a_partition_whose_transaction_was_refused_is_not_there() {
    let home = Home::new();
    let driver = opened(&home);
    let partition = &home.partition;
    home.fail(StorageCall::Transaction);
    assert!(!write(&home, &driver, partition, put()));
    home.heal();
    assert!(!is_there(&home, &driver, partition));
    // The first gives the partition its row, the second loses its guard, and all of it is rolled back.
    let both = vec![put(), Batch::new().require_present("never")];
    let done = home.run(driver.store().apply_whole(partition, both));
    assert!(done.stopped_by.is_some());
    assert!(!is_there(&home, &driver, partition));
    assert!(write(&home, &driver, partition, put()));
    assert!(is_there(&home, &driver, partition));
}

#[test]
fn another_instance_remembers_nothing() {
    let home = Home::new();
    let first = opened(&home);
    let partition = &home.partition;
    assert!(!is_there(&home, &first, partition));
    let second = opened(&home);
    assert!(!is_there(&home, &second, partition));
    assert!(write(&home, &second, partition, put()));
    let third = opened(&home);
    assert!(is_there(&home, &third, partition));
}

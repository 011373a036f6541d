//! The gate that readers pass, held and released by the thread that commits.

use super::explore;
use super::store::gate::Gate;
use super::sync::Arc;
use super::thread;
use crate::model::Model;

pub(crate) const WHO_WAITS_AT_THE_GATE_GOES_ON: Model = Model {
    name: "who_waits_at_the_gate_goes_on",
    bugs: &["gate_changes_without_its_lock"],
    explore: |effort| {
        explore(2, effort, held_and_released)
            + explore(2, effort, held_and_failed)
            + explore(2, effort, held_and_closed)
    },
};

fn at_the_gate(change: fn(&Gate), passed: fn(bool)) {
    let gate = Arc::new(Gate::new());
    let readers = [(); 2].map(|()| {
        let gate = Arc::clone(&gate);
        thread::spawn(move || passed(gate.pass().is_ok()))
    });
    gate.hold();
    change(&gate);
    for reader in readers {
        assert!(reader.join().is_ok());
    }
}

fn held_and_released() {
    at_the_gate(Gate::release, |passed| assert!(passed));
}

fn held_and_failed() {
    at_the_gate(
        |gate| {
            gate.fail();
            assert!(gate.is_failed() && gate.check().is_err());
            // What is at an end does not open again.
            gate.release();
            assert!(gate.is_failed());
        },
        |_| (),
    );
}

fn held_and_closed() {
    at_the_gate(
        |gate| {
            gate.close();
            gate.release();
            gate.recover();
            assert!(gate.pass().is_err());
        },
        |_| (),
    );
}

//! Goal: handlers that need the object's own verbs are opened with them: a built-in kind, and kinds that are
//! allotted by stored names. Method: one object, opened with a registry that is made from its timers.
#![cfg(test)]

mod home;

use std::sync::Arc;

use dueline::kinds::ticket_expiry::{Hold, Opened, TICKET_EXPIRY, Tickets};
use dueline::store::{Batch, StoreError};
use dueline::timers::{Fired, Registration, Registry, TimerError, TimerKind, Timers};
use dueline_testkit::handler;
use dueline_worker::{ObjectDriver, ObjectOptions, Start};
use home::{Home, START_MS};

fn open_with<E: From<StoreError>>(
    home: &Home,
    registry: impl AsyncFnOnce(&Timers) -> Result<Registry, E>,
) -> Result<ObjectDriver, E> {
    home.run(ObjectDriver::open_with(
        Arc::new(home.storage()),
        home.runtime(),
        registry,
        Start::Fresh,
        ObjectOptions::default(),
    ))
}

#[test]
fn a_built_in_kind_ends_what_it_holds_by_the_alarm_of_the_object() {
    let home = Home::new();
    let registry = async |timers: &Timers| -> Result<Registry, StoreError> {
        let tickets = Tickets::new(timers.clone());
        Ok(Registry::new()
            .with(TICKET_EXPIRY, tickets.registration())
            .expect("a new registry takes it"))
    };
    let driver = open_with(&home, registry).unwrap();
    home.run(driver.restore()).unwrap();
    let tickets = Tickets::new(driver.timers().clone());
    let hold = Hold::new("seat 1", 60_000).resource_max(1);
    let Opened::New(ticket) = home.run(tickets.open(&home.partition, &hold)).unwrap() else {
        panic!("a new ticket");
    };
    assert_eq!(home.alarm_ms(), Some(START_MS + 60_000));
    let again = home.run(tickets.open(&home.partition, &hold)).unwrap();
    assert!(matches!(again, Opened::Refused(_)));

    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.total.fired, home.alarm_ms()), (1, None));
    assert_eq!(
        home.run(tickets.read(&home.partition, ticket.id()))
            .unwrap(),
        None
    );
    assert!(matches!(
        home.run(tickets.open(&home.partition, &hold)).unwrap(),
        Opened::New(_)
    ));
}

#[test]
fn a_registry_of_stored_names_is_made_before_the_alarm_is_looked_at() {
    let home = Home::new();
    let open = |name: &'static str| {
        let partition = home.partition.clone();
        let registry = async move |timers: &Timers| -> Result<Registry, TimerError> {
            let kind: TimerKind = timers.kind_for_name(&partition, name).await?;
            let done = handler(|_, _| Box::pin(async { Ok(Fired::Done(Batch::new())) }));
            Ok(Registry::new()
                .with(kind, Registration::inline(done))
                .expect("a new registry takes it"))
        };
        open_with(&home, registry).unwrap()
    };
    let driver = open("first");
    let kind = home
        .run(driver.timers().kind_for_name(&home.partition, "first"))
        .unwrap();
    home.schedule(&driver, kind, "a", START_MS + 1_000);
    // Another deployment has another handler: the timer's kind keeps its number, and waits.
    drop(open("second"));
    let driver = open("first");
    assert_eq!(home.next_alarm(&driver).unwrap().total.fired, 1);
}

#[test]
fn what_the_making_of_a_registry_says_is_the_error_of_the_opening() {
    let home = Home::new();
    let registry = async |_: &Timers| -> Result<Registry, StoreError> {
        Err(StoreError::invalid("no registry today"))
    };
    let error = open_with(&home, registry).unwrap_err();
    assert!(error.to_string().contains("no registry today"), "{error}");
}

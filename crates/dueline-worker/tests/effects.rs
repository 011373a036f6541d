//! Goal: effects of the host's own commit with their batch or not at all, and one that fails is its timer's
//! failure alone. Method: timers that fire as a group, with effects that write a table past the store.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod home;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dueline::sql::{SqlConn, SqlParam};
use dueline::store::{Batch, NamespaceStore, ReadStore, StoreErrorKind};
use dueline::timers::{Fired, Registration};
use dueline_testkit::handler;
use dueline_worker::simulated::SimulatedEffects;
use dueline_worker::{ObjectStorage, effect_mark};
use home::handlers::reference_of;
use home::{A, Home, START_MS};

const CREATE: &str = "CREATE TABLE IF NOT EXISTS done (number INTEGER)";
const INSERT: &str = "INSERT INTO done (number) VALUES (?1)";
const SELECT: &str = "SELECT number FROM done ORDER BY rowid";

fn write(conn: &dyn SqlConn, number: u64) -> Result<(), String> {
    let number = i64::try_from(number).map_err(|error| error.to_string())?;
    let done = conn
        .execute(CREATE, &[])
        .and_then(|_| conn.execute(INSERT, &[SqlParam::Int(number)]));
    done.map(drop).map_err(|error| error.to_string())
}

/// The effects that stand.
fn done(home: &Home) -> Vec<i64> {
    let mut done = Vec::new();
    home.storage()
        .read(&mut |conn| {
            conn.execute(CREATE, &[])?;
            conn.query(SELECT, &[], &mut |row| {
                done.push(row.int(0)?);
                Ok(ControlFlow::Continue(()))
            })
        })
        .unwrap();
    done
}

/// A handler whose timer's reference is the number of its effect, with a row of its own beside it.
fn marks() -> Registration {
    let marks = handler(|_, timer| {
        let reference = reference_of(timer);
        let number = reference.parse().unwrap();
        let mut batch = Batch::new().put(format!("row {reference}"), "");
        batch.writes.push(effect_mark(number));
        Box::pin(async move { Ok(Fired::Done(batch)) })
    });
    Registration::inline(marks).group_max(16)
}

#[test]
fn an_effect_that_fails_takes_its_own_timer_back_and_no_other() {
    let home = Home::new();
    let tries = Arc::new(AtomicU64::new(0));
    let failures = Arc::clone(&tries);
    let effects: SimulatedEffects = Arc::new(move |number, conn| {
        write(conn, number)?;
        if number == 3 && failures.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err("the third is not ready".to_owned());
        }
        Ok(())
    });
    home.storage().set_effects(effects);
    let driver = home.driver([(A, marks())]);
    for reference in ["1", "2", "3", "4", "5"] {
        home.schedule(&driver, A, reference, START_MS + 1_000);
    }
    let report = home.next_alarm(&driver).unwrap();
    assert_eq!((report.total.fired, report.total.failed), (4, 1));
    assert_eq!(done(&home), [1, 2, 4, 5]);
    assert_eq!(home.pending(&driver), ["3"]);
    let row = |number: u64| {
        let key = format!("row {number}").into();
        home.run(driver.store().get(&home.partition, &key)).unwrap()
    };
    assert!(row(2).is_some() && row(3).is_none());
    let reference = "3".into();
    let view = home
        .run(driver.timers().get(&home.partition, A, &reference))
        .unwrap()
        .unwrap();
    assert_eq!(view.attempt, 1);
    assert_eq!(view.last_error.unwrap().error, "the third is not ready");
    let again = home.next_alarm(&driver).unwrap();
    assert_eq!(again.total.fired, 1);
    assert_eq!(done(&home), [1, 2, 4, 5, 3]);
    assert!(row(3).is_some() && home.pending(&driver).is_empty());
}

#[test]
fn an_effect_is_not_done_for_a_batch_that_loses_its_guard() {
    let home = Home::new();
    home.storage()
        .set_effects(Arc::new(|number, conn| write(conn, number)));
    let driver = home.driver([]);
    let mut lost = Batch::new().require_present("nothing").put("a", "");
    lost.writes.push(effect_mark(1));
    let outcome = home.run(driver.store().apply(&home.partition, lost));
    assert!(!outcome.unwrap().is_committed());
    assert_eq!(done(&home), [0; 0]);
    let mut held = Batch::new().require_absent("nothing").put("a", "");
    held.writes.push(effect_mark(2));
    let outcome = home.run(driver.store().apply(&home.partition, held));
    assert!(outcome.unwrap().is_committed());
    assert_eq!(done(&home), [2]);
}

#[test]
fn a_mark_that_nobody_knows_is_refused_with_its_batch() {
    let home = Home::new();
    let driver = home.driver([]);
    let mut batch = Batch::new().put("a", "");
    batch.writes.push(effect_mark(7));
    let refused = home
        .run(driver.store().apply(&home.partition, batch))
        .unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Invalid);
    assert_eq!(refused.detail(), "this object knows no effect 7");
    let key = "a".into();
    let found = home.run(driver.store().get(&home.partition, &key));
    assert_eq!(found.unwrap(), None);
}

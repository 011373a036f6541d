//! The conformance suite of the testkit, run over both handles of the SQLite store: the one for
//! asynchronous callers and the one for threads that may block. A crash is a copy of the files as
//! they lie while the store is at work.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dueline_sqlite::{Options, SizeLimit, SqliteStore};
use dueline_testkit::ManualClock;
use dueline_testkit::conformance::{Setup, Stop, Subject};
use support::parking::Parking;

thread_local! {
    /// Folders of a case, removed when its thread ends. What is static is never dropped.
    static FOLDERS: RefCell<Vec<tempfile::TempDir>> = const { RefCell::new(Vec::new()) };
}

fn new_folder() -> std::path::PathBuf {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    FOLDERS.with_borrow_mut(|folders| folders.push(folder));
    path
}

fn options(clock: &ManualClock, small: bool) -> Options {
    let options = Options::new(Arc::new(clock.clone()));
    if small {
        options.size_limit(SizeLimit::new(8 << 20).with_reserve(2 << 20))
    } else {
        options
    }
}

fn subject(folder: &Path, clock: ManualClock, small: bool, blocking: bool) -> Subject {
    let store = SqliteStore::open(folder.join("timers.db"), options(&clock, small)).unwrap();
    let subject = if blocking {
        Subject::with_wakes(Arc::new(Parking::new(&store)), clock.clone())
    } else {
        Subject::with_wakes(Arc::new(store.clone()), clock.clone())
    };
    let folder = folder.to_owned();
    subject.reopened_by(move |stop| {
        if stop == Stop::Clean {
            drop(store);
            return self::subject(&folder, clock, small, blocking);
        }
        let crashed = new_folder();
        for file in ["timers.db", "timers.db-wal"] {
            fs::copy(folder.join(file), crashed.join(file)).unwrap();
        }
        self::subject(&crashed, clock, small, blocking)
    })
}

mod asynchronous {
    use super::{Setup, Subject};

    fn make(setup: Setup) -> Subject {
        super::subject(&super::new_folder(), setup.clock, setup.small, false)
    }

    dueline_testkit::conformance_suite!(make; wakes, capacity, reopen);
}

mod blocking {
    use super::{Setup, Subject};

    fn make(setup: Setup) -> Subject {
        super::subject(&super::new_folder(), setup.clock, setup.small, true)
    }

    dueline_testkit::conformance_suite!(make; wakes, capacity, reopen);
}

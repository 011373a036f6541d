//! Which bug is switched on. A checker runs all threads of a model on the thread that asked for it, so
//! tests that run beside each other do not meet.

use std::cell::Cell;

std::thread_local! {
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether this bug is switched on.
pub(crate) fn is(name: &str) -> bool {
    PLANTED.get() == Some(name)
}

/// Switches a bug on until it is dropped.
#[derive(Debug)]
pub(crate) struct Planted(());

impl Planted {
    pub(crate) fn new(name: Option<&'static str>) -> Self {
        PLANTED.set(name);
        Self(())
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

//! The history of a run, as it is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline_history::{Event, What};

use crate::time::TrueTime;

/// Takes down what happens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    time: TrueTime,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    events: Vec<Event>,
    marks: BTreeMap<&'static str, u64>,
}

/// Names of actors, made once.
#[derive(Clone, Debug)]
pub struct Actor(Arc<str>);

impl Actor {
    /// An actor by its name.
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

impl Recorder {
    /// An empty history that goes by this time.
    pub fn new(time: &TrueTime) -> Self {
        Self {
            time: time.clone(),
            inner: Arc::default(),
        }
    }

    /// Takes down an event.
    pub fn event(&self, actor: &Actor, what: What) {
        let event = Event {
            at_ms: self.time.now_ms(),
            actor: Arc::clone(&actor.0),
            what,
        };
        self.lock().events.push(event);
    }

    /// Takes down an event that was kept back until now.
    pub fn relay(&self, event: Event) {
        let at_ms = self.time.now_ms();
        self.lock().events.push(Event { at_ms, ..event });
    }

    /// Notes that a place was reached that simulations must come by.
    pub fn mark(&self, name: &'static str) {
        *self.lock().marks.entry(name).or_insert(0) += 1;
    }

    /// What was taken down, and the marks that were reached.
    pub fn take(&self) -> (Vec<Event>, BTreeMap<&'static str, u64>) {
        let mut inner = self.lock();
        (
            std::mem::take(&mut inner.events),
            std::mem::take(&mut inner.marks),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The history of a run, as it is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dueline_history::{Event, Occurrence, Octets, What};

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
    hidden: Hidden,
}

/// What a run knows beside its history.
#[derive(Debug, Default)]
pub struct Hidden {
    /// How many events there were when each turn began, the first turn first.
    pub turns: Vec<usize>,
    /// Timers that a client was told to be scheduled by a request that holds many.
    pub promised: Vec<(Octets, Occurrence)>,
    /// What was seen to be wrong at once.
    pub wrong: Vec<String>,
}

/// All that was taken down.
#[derive(Debug)]
pub struct Taken {
    /// What happened.
    pub events: Vec<Event>,
    /// Places that were reached, and how often.
    pub marks: BTreeMap<&'static str, u64>,
    /// What is known beside.
    pub hidden: Hidden,
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

    /// The next turn begins.
    pub fn turn(&self) {
        let mut inner = self.lock();
        let events = inner.events.len();
        inner.hidden.turns.push(events);
    }

    /// A client was told that this timer is scheduled.
    pub fn promised(&self, partition: Octets, occurrence: Occurrence) {
        self.lock().hidden.promised.push((partition, occurrence));
    }

    /// Something is wrong that the history does not tell.
    pub fn wrong(&self, what: impl Into<String>) {
        self.lock().hidden.wrong.push(what.into());
    }

    /// What was taken down.
    pub fn take(&self) -> Taken {
        let mut inner = self.lock();
        Taken {
            events: std::mem::take(&mut inner.events),
            marks: std::mem::take(&mut inner.marks),
            hidden: std::mem::take(&mut inner.hidden),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

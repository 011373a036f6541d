//! The invariants, one file each. A checker sees each event once, beside what the history has told so
//! far, and names what breaks its rule at that event or in the end.

mod budget;
mod cancelled;
mod early;
mod fencing;
mod generations;
mod hygiene;
mod lateness;
mod lost;
mod marks;
mod order;
mod recovery;
mod recurrence;
mod retries;
mod starvation;
mod twice;
mod undecodable;
mod unknown;
mod wakes;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::book::{Applied, Book, PartitionBook};
use crate::{Commit, Event, What};

pub use marks::{HISTORIES_PER_MARK, Marks};

/// Which promise is meant; `TESTING.md` has the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Invariant {
    /// No timer is lost.
    I1,
    /// No effect twice.
    I2,
    /// No early fire.
    I3,
    /// A cancel is final.
    I4,
    /// What is unknown is one of two.
    I5,
    /// An owner that is none any more changes nothing.
    I6,
    /// No wake is missed.
    I7,
    /// Lateness is bounded.
    I8,
    /// A budget is kept.
    I9,
    /// Nobody starves.
    I10,
    /// Timers of a lane take effect in their order.
    I11,
    /// Recurrence counts from the due as asked.
    I12,
    /// Attempts are counted once, and back-off is as the policy says.
    I13,
    /// What cannot be run or read is not consumed.
    I14,
    /// The rows of a store are those of what is alive.
    I15,
    /// Generations of a process only grow.
    I16,
    /// Recovery is idempotent.
    I17,
    /// One seed is one history.
    I18,
    /// Every limit is reached.
    I19,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A promise that a history broke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Which.
    pub invariant: Invariant,
    /// The index of the event at which it was seen; the length of the history for the end.
    pub at: usize,
    /// How.
    pub text: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at event {}: {}", self.invariant, self.at, self.text)
    }
}

/// An event, and what the history has told up to it, this event included.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its index.
    pub index: usize,
    /// The event.
    pub event: &'a Event,
    /// What the history has told.
    pub book: &'a Book,
    /// What the event did, if it is a commit.
    pub applied: &'a Applied,
}

impl<'a> Seen<'a> {
    /// The commit and its partition as it left it, if the event is one.
    pub fn commit(&self) -> Option<(&'a Commit, &'a PartitionBook)> {
        let What::Commit(commit) = &self.event.what else {
            return None;
        };
        let partition = self.book.partitions.get(&commit.partition)?;
        Some((commit, partition))
    }
}

/// Where a checker writes what it found.
#[derive(Debug, Default)]
pub struct Findings(Vec<Broken>);

impl Findings {
    /// Adds one.
    pub fn add(&mut self, invariant: Invariant, at: usize, text: impl Into<String>) {
        self.0.push(Broken {
            invariant,
            at,
            text: text.into(),
        });
    }
}

/// One rule, or two that share what they remember.
pub trait Checker: fmt::Debug {
    /// Takes the next event.
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings);

    /// The history is over; `length` is how many events it had.
    fn end(&mut self, _book: &Book, _length: usize, _broken: &mut Findings) {}
}

/// All checkers over one history, event by event.
#[derive(Debug)]
pub struct Checkers {
    book: Book,
    checkers: Vec<Box<dyn Checker>>,
    found: Findings,
    length: usize,
}

impl Default for Checkers {
    fn default() -> Self {
        Self::new()
    }
}

impl Checkers {
    /// Every invariant that one history can break.
    pub fn new() -> Self {
        Self {
            book: Book::default(),
            checkers: vec![
                Box::new(crate::http::Clients::default()),
                Box::new(lost::Lost),
                Box::new(twice::Twice),
                Box::new(early::Early),
                Box::new(cancelled::Cancelled),
                Box::new(unknown::Unknown),
                Box::new(fencing::Fencing),
                Box::new(wakes::Wakes),
                Box::new(lateness::Lateness::default()),
                Box::new(budget::Budgets::default()),
                Box::new(starvation::Starvation::default()),
                Box::new(order::Order::default()),
                Box::new(recurrence::Recurrence),
                Box::new(retries::RetriesChecker::default()),
                Box::new(undecodable::Undecodable::default()),
                Box::new(hygiene::Hygiene),
                Box::new(generations::Generations::default()),
                Box::new(recovery::Recovery),
            ],
            found: Findings::default(),
            length: 0,
        }
    }

    /// The same with a rule of the caller's own.
    #[must_use]
    pub fn with(mut self, checker: Box<dyn Checker>) -> Self {
        self.checkers.push(checker);
        self
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        let applied = self.book.take(self.length, event);
        let seen = Seen {
            index: self.length,
            event,
            book: &self.book,
            applied: &applied,
        };
        for checker in &mut self.checkers {
            checker.take(&seen, &mut self.found);
        }
        self.length += 1;
    }

    /// What was broken so far.
    pub fn broken(&self) -> &[Broken] {
        &self.found.0
    }

    /// What the history has told so far.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The history is over: everything that was broken, in the order in which it was seen.
    pub fn end(mut self) -> Vec<Broken> {
        for checker in &mut self.checkers {
            checker.end(&self.book, self.length, &mut self.found);
        }
        self.found.0
    }
}

/// Everything that a history broke, in the order in which it was seen; empty is right.
pub fn check_all(history: &[Event]) -> Vec<Broken> {
    let mut checkers = Checkers::new();
    for event in history {
        checkers.take(event);
    }
    checkers.end()
}

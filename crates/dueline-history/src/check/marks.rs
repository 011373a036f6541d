//! I19, every limit is reached: the marks of a list, each a place that tests must come by, are counted
//! over many histories. A mark that none reached tells of a generator that is blind to it.

use std::collections::BTreeMap;

use super::{Broken, Invariant};
use crate::{Event, What};

/// How often each mark of a list was reached, over many histories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    wanted: BTreeMap<String, u64>,
    /// Marks that are reached and are in no list.
    strange: BTreeMap<String, u64>,
    histories: u64,
}

/// For how many histories one mark must be reached once.
pub const HISTORIES_PER_MARK: u64 = 1_000;

impl Marks {
    /// A list of marks, none reached yet.
    pub fn new<'a>(wanted: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            wanted: wanted.into_iter().map(|it| (it.to_owned(), 0)).collect(),
            ..Self::default()
        }
    }

    /// Counts the marks of one history.
    pub fn take(&mut self, history: &[Event]) {
        self.histories += 1;
        for event in history {
            if let What::Mark { name } = &event.what {
                self.reach(name, 1);
            }
        }
    }

    /// Adds the counts of another list, as another thread made them.
    pub fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        for (name, count) in other.wanted.iter().chain(&other.strange) {
            self.reach(name, *count);
        }
    }

    fn reach(&mut self, name: &str, times: u64) {
        if let Some(count) = self.wanted.get_mut(name) {
            *count += times;
        } else if times > 0 {
            *self.strange.entry(name.to_owned()).or_default() += times;
        }
    }

    /// How many histories were counted.
    pub fn histories(&self) -> u64 {
        self.histories
    }

    /// How often each mark was reached.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.wanted
    }

    /// Marks that were not reached once in every thousand histories, and marks that are in no list.
    /// With fewer histories only the latter are named.
    pub fn broken(&self) -> Vec<Broken> {
        let wanted = self.histories / HISTORIES_PER_MARK;
        let rare = self.wanted.iter().filter(|(_, count)| **count < wanted);
        let rare = rare.map(|(name, count)| {
            let histories = self.histories;
            format!("reached {count} times in {histories} histories: {name}")
        });
        let strange = self.strange.keys();
        let strange = strange.map(|name| format!("is in no list of marks: {name}"));
        let broken = rare.chain(strange).map(|text| Broken {
            invariant: Invariant::I19,
            at: 0,
            text,
        });
        broken.collect()
    }
}

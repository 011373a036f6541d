use crate::planted::Planted;
use crate::{under_loom, under_shuttle};

/// How much is explored.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Preemptions in one interleaving beyond those that a model takes at least; under loom.
    pub more_preemptions: usize,
    /// Schedules of a model by each way of drawing them; under shuttle.
    pub schedules: usize,
    /// Where drawing begins.
    pub first_seed: u64,
}

impl Default for Effort {
    /// What every run of the tests explores.
    fn default() -> Self {
        Self {
            more_preemptions: 0,
            schedules: 150,
            first_seed: 1,
        }
    }
}

/// Something that threads do together, and what must hold however they are interleaved.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// What holds.
    pub name: &'static str,
    /// Bugs that it must find.
    pub bugs: &'static [&'static str],
    pub(crate) explore: fn(Effort) -> u64,
}

impl Model {
    /// Explores, with one bug switched on or none; how many interleavings there were.
    ///
    /// # Panics
    /// If one of them breaks what must hold, or does not end. The panic may abort the process: the
    /// threads of the model are in the middle of something.
    pub fn explore(&self, effort: Effort, bug: Option<&'static str>) -> u64 {
        let _planted = Planted::new(bug);
        (self.explore)(effort)
    }
}

/// All models.
pub fn models() -> impl Iterator<Item = &'static Model> {
    under_loom::MODELS.iter().chain(under_shuttle::MODELS)
}

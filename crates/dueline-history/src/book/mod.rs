//! What a history has told so far: the rows as its commits left them, the requests and their answers,
//! what nodes can run. Every checker of rules about rows reads it, so that rows are decoded once.

mod partition;
mod place;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use partition::{Applied, Gone, PartitionBook, Row};
pub use place::{Change, Place, Put, Scheduled};

use crate::{Commit, EngineRules, Event, Octets, Told, Verb, What};

/// What a history has told so far.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// What it is held to.
    pub rules: EngineRules,
    /// Its partitions.
    pub partitions: BTreeMap<Octets, PartitionBook>,
    /// The requests at the level of the engine.
    pub requests: BTreeMap<u64, Request>,
    /// The kinds that each node runs.
    pub registries: BTreeMap<u16, Vec<u8>>,
    /// Since when nothing goes wrong any more, if it does not.
    pub liveness_since_ms: Option<u64>,
    /// The latest time that a store's clock was seen at.
    pub latest_store_ms: u64,
    /// The latest event's time.
    pub latest_ms: u64,
}

/// A request and what became of it.
#[derive(Clone, Debug)]
pub struct Request {
    /// What was asked for.
    pub verb: Verb,
    /// By whom.
    pub actor: Arc<str>,
    /// The index of its invoke.
    pub invoked: usize,
    /// How many commits were its writes.
    pub commits: u64,
    /// The generations of its name that these put.
    pub put: Vec<u64>,
    /// The index of its answer and the answer, once it has one.
    pub told: Option<(usize, Told)>,
}

impl Request {
    /// Whether it was acknowledged before this event.
    pub fn was_acknowledged_before(&self, index: usize) -> bool {
        matches!(&self.told, Some((told, Told::Ok { .. })) if *told < index)
    }
}

impl Book {
    /// Takes the event of this index in; what it did if it is a commit.
    pub(crate) fn take(&mut self, index: usize, event: &Event) -> Applied {
        self.latest_ms = self.latest_ms.max(event.at_ms);
        match &event.what {
            What::Begin {
                rules: Some(rules), ..
            } => self.rules = (**rules).clone(),
            What::Phase { liveness } => {
                self.liveness_since_ms = liveness.then_some(event.at_ms);
            }
            What::Registry { node, kinds } => {
                self.registries.insert(*node, kinds.clone());
            }
            What::Stopped { node, .. } => {
                self.registries.remove(node);
            }
            What::Verb(verb) => {
                let request = Request {
                    verb: verb.clone(),
                    actor: Arc::clone(&event.actor),
                    invoked: index,
                    commits: 0,
                    put: Vec::new(),
                    told: None,
                };
                self.requests.entry(verb.request).or_insert(request);
            }
            What::Told { request, told } => {
                if let Some(request) = self.requests.get_mut(request)
                    && request.told.is_none()
                {
                    request.told = Some((index, told.clone()));
                }
            }
            What::Commit(commit) => return self.commit(index, event, commit),
            _ => {}
        }
        Applied::default()
    }

    fn commit(&mut self, index: usize, event: &Event, commit: &Commit) -> Applied {
        self.latest_store_ms = self.latest_store_ms.max(commit.store_ms);
        if !self.partitions.contains_key(&commit.partition) {
            self.partitions
                .insert(commit.partition.clone(), PartitionBook::default());
        }
        let Some(partition) = self.partitions.get_mut(&commit.partition) else {
            return Applied::default();
        };
        let put = Put::of(index, event, commit.turn, commit.epoch);
        let applied = partition.apply(commit, &put);
        partition.epoch = partition.epoch.max(commit.epoch);
        partition.wakes.clone_from(&commit.wakes);
        let request = commit.request.and_then(|it| self.requests.get_mut(&it));
        if let Some(request) = request {
            request.commits += 1;
            let ours = applied.changes.iter().filter_map(Change::to).filter(|to| {
                let (of, verb) = (&to.occurrence, &request.verb);
                of.kind == verb.kind && of.reference == verb.reference
            });
            request.put.extend(ours.map(|to| to.occurrence.generation));
        }
        applied
    }

    /// Whether some node runs this kind.
    pub fn runs(&self, kind: u8) -> bool {
        self.registries.values().any(|kinds| kinds.contains(&kind))
    }
}

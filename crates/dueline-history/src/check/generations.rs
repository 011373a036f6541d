//! I16, generations of a process only grow. No time is stored that could go back: what tells one
//! scheduling from the next, and orders timers of one due, is the generation, and a clock that steps back
//! does not take it back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Checker, Findings, Invariant, Seen};
use crate::book::Applied;
use crate::{EffectMark, Outcome, Told, What};

#[derive(Debug, Default)]
pub(super) struct Generations {
    /// The largest generation that each process was told.
    told: BTreeMap<Arc<str>, u64>,
    /// What that was when a request was sent.
    at_invoke: BTreeMap<u64, u64>,
}

impl Checker for Generations {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        match &seen.event.what {
            What::Verb(verb) => {
                let largest = self.told.get(&seen.event.actor).copied().unwrap_or(0);
                self.at_invoke.insert(verb.request, largest);
            }
            What::Told { request, told } => {
                let largest = self.at_invoke.remove(request);
                let Told::Ok {
                    outcome: Outcome::Created | Outcome::Replaced,
                    generation,
                } = told
                else {
                    return;
                };
                if let Some(largest) = largest.filter(|largest| generation <= largest) {
                    let text = format!(
                        "request {request} drew {generation}, after {largest} by the same process"
                    );
                    broken.add(Invariant::I16, seen.index, text);
                }
                let told = self.told.entry(Arc::clone(&seen.event.actor)).or_default();
                *told = (*told).max(*generation);
            }
            What::Commit(commit) => {
                for mark in commit.effects.iter().filter(|it| it.next_due_ms.is_some()) {
                    if let Some(text) = went_back(seen.applied, mark) {
                        broken.add(Invariant::I16, seen.index, text);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A timer that goes on has a larger generation than before, if one process drew both.
fn went_back(applied: &Applied, mark: &EffectMark) -> Option<String> {
    let of = &mark.occurrence;
    let (from, to) = (applied.before(of)?, applied.next_of(of)?);
    let (old, new) = (&from.put.scheduled, &to.put.scheduled);
    let same_process = old.actor == new.actor && old.epoch == new.epoch;
    (same_process && to.occurrence.generation < of.generation)
        .then(|| format!("goes on as {}: {of:?}", to.occurrence.generation))
}

//! I1, no timer is lost: a timer ends with its effect, among the dead, or because somebody said so; one
//! that was acknowledged is there, and what is there is found in the store and served in the end.

use super::undecodable::is_set_aside;
use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Change, Place, Request};
use crate::{Commit, EffectMark, Outcome, Scan, Source, Told, VerbName, What};

#[derive(Debug, Default)]
pub(super) struct Lost;

impl Checker for Lost {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let mut broke = |text: String| broken.add(Invariant::I1, seen.index, text);
        match &seen.event.what {
            What::Commit(commit) => {
                for change in &seen.applied.changes {
                    if let Change::Gone { from } = change
                        && let Some(text) = vanished(seen, commit, from)
                    {
                        broke(text);
                    }
                }
            }
            What::Told {
                request,
                told:
                    Told::Ok {
                        outcome,
                        generation,
                    },
            } => {
                let request = seen.book.requests.get(request);
                if let Some(text) =
                    request.and_then(|it| wrongly_told(seen, it, *outcome, *generation))
                {
                    broke(text);
                }
            }
            What::Scan(scan) => not_found(seen, scan, &mut broke),
            _ => {}
        }
    }
}

/// Why a timer may not be gone by this commit.
fn vanished(seen: &Seen<'_>, commit: &Commit, from: &Place) -> Option<String> {
    let gone = &from.occurrence;
    let took_effect = |mark: &EffectMark| mark.occurrence == *gone;
    match commit.source {
        Source::Engine => {
            let is_kept = from.header.is_none() && is_set_aside(commit, &from.key, &from.payload);
            let took_effect = commit.effects.iter().any(took_effect);
            let is_right = took_effect || is_kept || commit.cuts.contains(gone);
            (!is_right).then(|| format!("vanished without an effect: {from:?}"))
        }
        Source::Store => Some(format!("vanished by the store itself: {from:?}")),
        Source::User => {
            let request = seen.book.requests.get(&commit.request?)?;
            let may_remove = match request.verb.verb {
                VerbName::Schedule
                | VerbName::Cancel
                | VerbName::Reschedule
                | VerbName::Change
                | VerbName::Requeue
                | VerbName::Purge => {
                    gone.kind == request.verb.kind && gone.reference == request.verb.reference
                }
                VerbName::Write => true,
                VerbName::FireNow | VerbName::Get | VerbName::Pause | VerbName::Resume => false,
            };
            (!may_remove).then(|| format!("vanished by {:?}: {from:?}", request.verb))
        }
    }
}

/// What is wrong with this answer, if the request has had its commit.
fn wrongly_told(
    seen: &Seen<'_>,
    request: &Request,
    outcome: Outcome,
    generation: u64,
) -> Option<String> {
    let verb = &request.verb;
    match outcome {
        Outcome::Created | Outcome::Replaced if request.commits > 0 => {
            let is_there = request.put.contains(&generation);
            (!is_there).then(|| format!("acknowledged as {generation} and not written: {verb:?}"))
        }
        Outcome::NotFound if matches!(verb.verb, VerbName::Get | VerbName::Cancel) => {
            let partition = seen.book.partitions.get(&verb.partition)?;
            let mut alive = partition.named(verb.kind, &verb.reference);
            let all_along =
                alive.find(|it| it.dead.is_none() && it.put.scheduled.index < request.invoked)?;
            Some(format!("was not found, and is there: {all_along:?}"))
        }
        _ => None,
    }
}

/// Every timer that is alive is in the store, and in the end none is that could have run.
fn not_found(seen: &Seen<'_>, scan: &Scan, broke: &mut impl FnMut(String)) {
    let Some(partition) = seen.book.partitions.get(&scan.partition) else {
        return;
    };
    for place in partition.places.values() {
        let is_found = scan
            .rows
            .binary_search_by(|(key, _)| key.0.cmp(&place.key))
            .is_ok();
        if !is_found {
            broke(format!("is not in the store: {place:?}"));
        }
    }
    if !scan.at_rest {
        return;
    }
    for place in partition.alive() {
        let kind = place.occurrence.kind;
        let can_run =
            seen.book.runs(kind) && !partition.is_paused(dueline::timers::TimerKind(kind));
        if can_run && place.at_ms <= seen.event.at_ms {
            broke(format!("is left at the end: {place:?}"));
        }
    }
}

//! I5, what is unknown is one of two: a request that was acknowledged has exactly one commit, between its
//! invoke and its answer; one that failed never has any; one without an answer has one at most.

use super::{Checker, Findings, Invariant, Seen};
use crate::book::Request;
use crate::{Occurrence, Outcome, Policy, Told, What};

#[derive(Debug, Default)]
pub(super) struct Unknown;

impl Checker for Unknown {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let mut broke = |text: String| broken.add(Invariant::I5, seen.index, text);
        let known = |request: &u64| seen.book.requests.get(request);
        match &seen.event.what {
            What::Verb(verb) if known(&verb.request).is_some_and(|it| it.invoked != seen.index) => {
                broke(format!("request {} was used for two verbs", verb.request));
            }
            What::Told { request, told } => match known(request) {
                None => broke(format!("request {request} was answered and never sent")),
                Some(it) if it.told.as_ref().is_some_and(|(at, _)| *at != seen.index) => {
                    broke(format!(
                        "request {request} was answered twice: {:?}",
                        it.verb
                    ));
                }
                Some(it) => {
                    if let Some(text) = wrongly_told(seen, it, told) {
                        broke(format!("{text}: {:?}", it.verb));
                    }
                }
            },
            What::Commit(commit) => {
                let Some(number) = commit.request else { return };
                let Some(request) = known(&number) else {
                    return broke(format!(
                        "a commit of request {number}, which was never sent"
                    ));
                };
                if request.commits > 1 {
                    broke(format!("has two commits: {:?}", request.verb));
                }
                match &request.told {
                    Some((_, told @ (Told::Ok { .. } | Told::Fail { .. }))) => {
                        broke(format!(
                            "committed after it was told {told:?}: {:?}",
                            request.verb
                        ));
                    }
                    Some((_, Told::Unknown)) | None => {}
                }
            }
            _ => {}
        }
    }
}

fn wrongly_told(seen: &Seen<'_>, request: &Request, told: &Told) -> Option<String> {
    let commits = request.commits;
    match told {
        Told::Unknown => None,
        Told::Fail { why } => (commits > 0).then(|| format!("failed ({why}) and was committed")),
        Told::Ok { outcome, .. } if outcome.is_write() => {
            (commits == 0).then(|| format!("was acknowledged ({outcome:?}) and not committed"))
        }
        Told::Ok { outcome, .. } if commits > 0 => {
            Some(format!("was told {outcome:?} and was committed"))
        }
        Told::Ok {
            outcome: Outcome::Kept,
            ..
        } if request.verb.policy.is_some_and(|it| it != Policy::IfAbsent) => {
            Some("kept a timer that its policy does not keep".to_owned())
        }
        Told::Ok {
            outcome: Outcome::Kept | Outcome::Found,
            generation,
        } => {
            // What was seen was there at some time between the invoke and the answer.
            let partition = seen.book.partitions.get(&request.verb.partition)?;
            let occurrence = Occurrence {
                kind: request.verb.kind,
                reference: request.verb.reference.clone(),
                generation: *generation,
            };
            if partition.places.contains_key(&occurrence) {
                return None;
            }
            match partition.gone.get(&occurrence) {
                None => Some(format!("saw generation {generation}, which never was")),
                Some(gone) => (gone.index < request.invoked)
                    .then(|| format!("saw generation {generation}, which was gone")),
            }
        }
        Told::Ok { .. } => None,
    }
}

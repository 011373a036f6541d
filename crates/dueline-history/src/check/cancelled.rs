//! I4, a cancel is final: what an acknowledged cancel or replacement removed takes no effect and is not
//! there any more.

use super::{Checker, Findings, Invariant, Seen};
use crate::book::Gone;
use crate::{Occurrence, Outcome, Told, What};

#[derive(Debug, Default)]
pub(super) struct Cancelled;

/// Whether the request that removed this occurrence was acknowledged before the event.
pub(super) fn is_final(seen: &Seen<'_>, gone: &Gone) -> bool {
    let request = gone.request.and_then(|it| seen.book.requests.get(&it));
    request.is_some_and(|it| it.was_acknowledged_before(seen.index))
}

impl Checker for Cancelled {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        for (occurrence, gone) in &seen.applied.after_the_end {
            if !gone.had_effect && is_final(seen, gone) {
                let text = format!("took effect after an acknowledged removal: {occurrence:?}");
                broken.add(Invariant::I4, seen.index, text);
            }
        }
        let What::Told {
            request,
            told:
                Told::Ok {
                    outcome: Outcome::Removed,
                    generation,
                },
        } = &seen.event.what
        else {
            return;
        };
        let Some(request) = seen.book.requests.get(request).filter(|it| it.commits > 0) else {
            return;
        };
        let occurrence = Occurrence {
            kind: request.verb.kind,
            reference: request.verb.reference.clone(),
            generation: *generation,
        };
        let partition = seen.book.partitions.get(&request.verb.partition);
        if partition.is_some_and(|it| it.places.contains_key(&occurrence)) {
            let text = format!("was acknowledged as removed and is there: {occurrence:?}");
            broken.add(Invariant::I4, seen.index, text);
        }
    }
}

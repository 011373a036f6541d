//! I6, an owner that is none any more changes nothing. No epoch is stored: the fence is the presence of
//! the row. So no commit of the engine deletes or moves a timer that was not there just before, or puts
//! one over another; and a commit of an older epoch that lands late touches no row of a newer one.

use super::{Checker, Findings, Invariant, Seen};
use crate::{Octets, Source, VerbName};

#[derive(Debug, Default)]
pub(super) struct Fencing;

impl Checker for Fencing {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        let mut broke = |text: String| broken.add(Invariant::I6, seen.index, text);
        let request = commit.request.and_then(|it| seen.book.requests.get(&it));
        let is_guarded = match commit.source {
            Source::Engine | Source::Store => true,
            Source::User => request.is_some_and(|it| it.verb.verb != VerbName::Write),
        };
        if is_guarded {
            for key in &seen.applied.missing {
                broke(format!(
                    "a timer that was not there was moved or removed: {:?}",
                    Octets(key.clone())
                ));
            }
            for key in &seen.applied.overwritten {
                broke(format!(
                    "a timer was put over another: {:?}",
                    Octets(key.clone())
                ));
            }
        }
        if commit.source == Source::Engine {
            for key in &seen.applied.of_newer_epochs {
                broke(format!(
                    "a late commit of epoch {} changed what a newer one had written since: {:?}",
                    commit.epoch,
                    Octets(key.clone())
                ));
            }
        }
    }
}

//! I13, attempts are counted once, and back-off is as the policy says: a fault that is not the handler's
//! charges nothing, a call goes out under an attempt that was counted before, and a timer dies of its
//! attempts when they are all used, not before and not after.

use std::collections::BTreeMap;

use dueline::rows::{DeadReason, Failure};
use dueline::timers::RetryPolicy;

use super::{Checker, Findings, Invariant, Seen};
use crate::book::{Change, Place};
use crate::{Ended, Occurrence, Octets, Retries, Run, Source, What};

/// Reasons of the engine's own, for which no attempt is charged.
const STORE_FAULTS: [&str; 3] = [
    "the store is full",
    "the outcome of the commit was unknown",
    "the call could not begin before its claim was about to end",
];

/// How much later than planned a move may land because places were taken, in milliseconds.
const PLACES_MS: u64 = 8;

#[derive(Debug, Default)]
pub(super) struct RetriesChecker {
    /// How the last run of a timer ended.
    ended: BTreeMap<(Octets, Occurrence), Ended>,
    /// The last attempt of a timer that was claimed.
    claimed: BTreeMap<(Octets, Occurrence), u16>,
}

impl Checker for RetriesChecker {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let mut broke = |text: String| broken.add(Invariant::I13, seen.index, text);
        match &seen.event.what {
            What::Fire(run) => self.note(run),
            What::Called(run) => {
                let of = timer_of(run);
                if self
                    .claimed
                    .get(&of)
                    .is_none_or(|claimed| *claimed < run.attempt)
                {
                    broke(format!(
                        "a call of an attempt that was not counted before: {run:?}"
                    ));
                }
                self.note(run);
            }
            _ => {}
        }
        let Some((commit, _)) = seen.commit() else {
            return;
        };
        for change in &seen.applied.changes {
            let Some(from) = change.from() else { continue };
            let of = (commit.partition.clone(), from.occurrence.clone());
            let ended = if self.ended.is_empty() {
                None
            } else {
                self.ended.remove(&of)
            };
            let Change::Moved { from, to } = change else {
                continue;
            };
            if commit.source == Source::Engine {
                let policy = seen.book.rules.retries.iter();
                let policy = policy.copied().find(|it| it.kind == from.occurrence.kind);
                if let Some(text) = wrong_move((from, to), ended, policy, seen.book.latest_store_ms)
                {
                    broke(format!("{text}: {from:?} became {to:?}"));
                }
            }
            if to.is_claimed() {
                self.claimed.insert(of, to.attempt());
            }
        }
    }
}

impl RetriesChecker {
    fn note(&mut self, run: &Run) {
        self.ended.insert(timer_of(run), run.ended);
    }
}

fn timer_of(run: &Run) -> (Octets, Occurrence) {
    let occurrence = Occurrence {
        kind: run.kind,
        reference: run.reference.clone(),
        generation: run.generation,
    };
    (run.partition.clone(), occurrence)
}

/// The rule that a move of the engine breaks, if any.
fn wrong_move(
    (from, to): (&Place, &Place),
    ended: Option<Ended>,
    policy: Option<Retries>,
    latest_ms: u64,
) -> Option<String> {
    if from.dead.is_some() {
        return Some("a dead timer was moved".to_owned());
    }
    let (old, new) = (from.header.as_ref()?, to.header.as_ref()?);
    if is_charged_wrongly(from, to, ended) {
        let (old, new) = (old.attempt, new.attempt);
        return Some(format!("attempts are charged wrongly, {old} became {new}"));
    }
    let policy = policy?;
    let most = policy.attempts_max.map_or(u16::MAX, |most| most.max(1));
    if to.dead == Some(DeadReason::Exhausted) && new.attempt < most {
        return Some(format!("died of {} attempts of {most}", new.attempt));
    }
    if to.dead.is_none() && !to.is_claimed() && new.attempt >= most {
        return Some(format!("goes on after {} attempts of {most}", new.attempt));
    }
    let failure = new
        .failure
        .as_ref()
        .filter(|_| new.failure != old.failure)?;
    if to.dead.is_some() || to.is_claimed() {
        return None;
    }
    let delay_ms = to.at_ms.saturating_sub(failure.at_ms);
    // While a clock is set back, a timer is not due again before it was found due.
    let is_set_back =
        failure.at_ms < latest_ms || (!from.is_claimed() && failure.at_ms < from.at_ms);
    if is_set_back && (from.is_claimed() || to.at_ms <= from.at_ms + PLACES_MS) {
        return None;
    }
    let is_excused = is_uncharged(failure, ended);
    let is_cut = failure.error.starts_with("attempt ") && failure.error.contains(" was cut:");
    let by_policy = is_within(policy, new.attempt, delay_ms)
        || (is_excused && is_within(policy, new.attempt + 1, delay_ms));
    let is_right = match ended {
        // The delay that its handler named, unless it is another failure by now.
        Some(Ended::Retry {
            after_ms: Some(after_ms),
        }) => {
            let named_ms = after_ms.max(1);
            (named_ms..=named_ms.saturating_add(PLACES_MS)).contains(&delay_ms)
                || ((is_excused || is_cut) && by_policy)
        }
        _ => by_policy,
    };
    (!is_right).then(|| format!("backs off for {delay_ms} ms, which is not {policy:?}"))
}

fn is_charged_wrongly(from: &Place, to: &Place, ended: Option<Ended>) -> bool {
    let charged = i32::from(to.attempt()) - i32::from(from.attempt());
    let counted = i32::from(from.is_claimed());
    let failure = |place: &Place| place.header.as_ref().and_then(|it| it.failure.clone());
    let (old, new) = (failure(from), failure(to));
    let is_released = from.is_claimed() && to.dead.is_none() && old == new;
    let is_excused = new.as_ref().is_some_and(|it| is_uncharged(it, ended));
    let wanted = if to.is_claimed() {
        1
    } else if is_released || is_excused || to.dead == Some(DeadReason::UndecodablePayload) {
        -counted
    } else if to.dead == Some(DeadReason::Exhausted) && charged == 0 {
        // All its runs were cut: the last is counted already.
        return counted == 0;
    } else {
        1 - counted
    };
    // The same failure in the same millisecond, by a clock that was set back, looks like a release.
    let same_again = charged == 0 && wanted == -1 && old == new && new.is_some();
    charged != wanted && !same_again
}

/// Whether a failure is one that charges no attempt.
fn is_uncharged(failure: &Failure, ended: Option<Ended>) -> bool {
    STORE_FAULTS.contains(&failure.error.as_str()) || ended == Some(Ended::Uncharged)
}

fn is_within(policy: Retries, attempt: u16, delay_ms: u64) -> bool {
    let policy = RetryPolicy {
        attempts_max: policy.attempts_max,
        initial_ms: policy.initial_ms,
        max_ms: policy.max_ms,
        jitter_percent: policy.jitter_percent,
    };
    let base_ms = policy.base_delay_ms(attempt);
    let jitter_ms = base_ms.saturating_mul(policy.jitter_percent.into()) / 100;
    let most_ms = base_ms.saturating_add(jitter_ms).saturating_add(PLACES_MS);
    (base_ms..=most_ms).contains(&delay_ms)
}

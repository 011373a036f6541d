use std::collections::BTreeSet;

use super::calls::Calls;
use crate::check::Invariant;

/// How long a call may arrive behind what forbids it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    pub(super) deadline_ms: u64,
    pub(super) lag_ms: u64,
}

/// What is known of a timer from the answers that its client got.
#[derive(Clone, Debug, Default)]
pub(super) struct Timer {
    /// One of these is the timer, or was, until it fired.
    candidates: BTreeSet<u64>,
    /// Whether there surely was one: not if the only request for it got no answer.
    is_certain: bool,
    /// Whether a cancel that got no answer may have removed it.
    cancel_in_doubt: bool,
    /// Versions that were removed for good.
    removed: Vec<Removed>,
    /// Versions that must have been accepted by then, because they were gone.
    gone: Vec<Gone>,
}

#[derive(Clone, Debug)]
struct Removed {
    version: u64,
    at_ms: u64,
    /// Whether a call of it may have been under way.
    may_be_under_way: bool,
}

#[derive(Clone, Debug)]
struct Gone {
    candidates: BTreeSet<u64>,
    at_ms: u64,
}

impl Timer {
    /// A schedule was acknowledged.
    pub(super) fn scheduled(&mut self, at_ms: u64, version: u64, created: bool) {
        self.candidates.remove(&version);
        if created {
            self.was_gone(at_ms);
        }
        self.remove(at_ms, true);
        self.candidates.insert(version);
        self.is_certain = true;
    }

    /// A cancel was acknowledged.
    pub(super) fn cancelled(&mut self, at_ms: u64, force: bool) {
        self.remove(at_ms, force);
    }

    /// A cancel found nothing. One that was sent before and got no answer may have been the reason.
    pub(super) fn not_found(&mut self, at_ms: u64, had_no_answer: bool, force: bool) {
        self.was_gone(at_ms);
        self.remove(at_ms, force && had_no_answer);
    }

    /// A cancel was refused: what was there is there.
    pub(super) fn not_cancelled(&mut self) {
        self.cancel_in_doubt = false;
    }

    /// A schedule got no answer: it may get one when it is sent again.
    pub(super) fn perhaps_scheduled(&mut self, version: u64) {
        self.candidates.insert(version);
    }

    /// A cancel got no answer: it may get one when it is sent again.
    pub(super) fn perhaps_cancelled(&mut self) {
        self.cancel_in_doubt = true;
    }

    /// A list was answered with this version of it, or without it; the rule that this breaks.
    pub(super) fn listed(
        &mut self,
        (invoked_ms, answered_ms): (u64, u64),
        found: Option<u64>,
        calls: &Calls,
    ) -> Option<(Invariant, String)> {
        if let Some(version) = found {
            if let Some(removed) = self.removed.iter().find(|it| it.version == version) {
                let at_ms = removed.at_ms;
                return (at_ms <= invoked_ms).then(|| {
                    let text = format!("was listed as version {version}, removed at {at_ms}");
                    (Invariant::I4, text)
                });
            }
            // Seen once, so it was done; from now on it is no more in doubt.
            self.candidates = BTreeSet::from([version]);
            self.is_certain = true;
            self.cancel_in_doubt = false;
            return None;
        }
        let is_later = |version: &u64| {
            calls
                .asked(*version)
                .is_some_and(|asked| asked.due_ms > answered_ms)
        };
        (self.must_be_there() && self.candidates.iter().all(is_later)).then(|| {
            let text = format!("is not listed at {answered_ms} although it is not due: it is lost");
            (Invariant::I1, text)
        })
    }

    /// The rules that are broken in the end.
    pub(super) fn end(&self, calls: &Calls, rules: Rules) -> Vec<(Invariant, String)> {
        let mut broken = Vec::new();
        let accepted = |of: &BTreeSet<u64>, by_ms: u64| {
            of.iter().any(|version| calls.accepted_by(*version, by_ms))
        };
        if self.must_be_there() && !accepted(&self.candidates, u64::MAX) {
            let text = format!(
                "is lost: acknowledged, and no call was accepted; version {:?}",
                self.candidates
            );
            broken.push((Invariant::I1, text));
        }
        for gone in &self.gone {
            if !accepted(&gone.candidates, gone.at_ms) {
                let text = format!(
                    "is lost: gone at {}, and no call was accepted before; version {:?}",
                    gone.at_ms, gone.candidates
                );
                broken.push((Invariant::I1, text));
            }
        }
        let late = self.removed.iter().filter_map(|it| it.broken(calls, rules));
        broken.extend(late.map(|text| (Invariant::I4, text)));
        broken
    }

    /// Whether it stands there unless it has fired.
    fn must_be_there(&self) -> bool {
        self.is_certain && !self.cancel_in_doubt && !self.candidates.is_empty()
    }

    fn was_gone(&mut self, at_ms: u64) {
        if self.must_be_there() {
            self.gone.push(Gone {
                candidates: self.candidates.clone(),
                at_ms,
            });
        }
    }

    fn remove(&mut self, at_ms: u64, may_be_under_way: bool) {
        for version in std::mem::take(&mut self.candidates) {
            self.removed.push(Removed {
                version,
                at_ms,
                may_be_under_way,
            });
        }
        self.is_certain = false;
        self.cancel_in_doubt = false;
    }
}

impl Removed {
    /// A call behind the removal is right only if it was under way: due before, and here in the time
    /// that a call may take. What was seen late, on a busy machine, may have come before.
    fn broken(&self, calls: &Calls, rules: Rules) -> Option<String> {
        let last_ms = calls.last_ms(self.version)?;
        let due_ms = calls.asked(self.version)?.due_ms;
        let mut until_ms = self.at_ms;
        if due_ms <= self.at_ms {
            until_ms += rules.lag_ms;
            if self.may_be_under_way {
                until_ms += rules.deadline_ms;
            }
        }
        (last_ms > until_ms).then(|| {
            format!(
                "was called at {last_ms}, although version {} was removed at {}",
                self.version, self.at_ms
            )
        })
    }
}

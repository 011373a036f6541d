use std::collections::BTreeMap;

use crate::check::Invariant;
use crate::{Event, What};

/// A version that a client asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) timer: String,
    pub(super) due_ms: u64,
    calls: Vec<Call>,
    occurrence: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    at_ms: u64,
    accepted: bool,
}

/// Every version that was asked for, and the calls of it.
#[derive(Debug, Default)]
pub(super) struct Calls {
    versions: BTreeMap<u64, Asked>,
    occurrences: BTreeMap<String, u64>,
}

impl Calls {
    pub(super) fn asked_for(&mut self, version: u64, timer: &str, due_ms: u64) {
        self.versions.entry(version).or_insert_with(|| Asked {
            timer: timer.to_owned(),
            due_ms,
            calls: Vec::new(),
            occurrence: None,
        });
    }

    pub(super) fn asked(&self, version: u64) -> Option<&Asked> {
        self.versions.get(&version)
    }

    /// Takes a call, and tells which rules it broke.
    pub(super) fn take(&mut self, event: &Event, broke: &mut impl FnMut(Invariant, String)) {
        let What::Call {
            timer,
            version,
            occurrence,
            due_ms,
            status,
        } = &event.what
        else {
            return;
        };
        let Some(asked) = self.versions.get_mut(version) else {
            let text = format!("{timer} was called, and nobody asked for {version}");
            return broke(Invariant::I5, text);
        };
        if asked.timer != *timer || asked.due_ms != *due_ms {
            broke(
                Invariant::I12,
                format!(
                    "{timer} was called as due at {due_ms}, version {version} is {} due at {}",
                    asked.timer, asked.due_ms
                ),
            );
        }
        if event.at_ms < asked.due_ms {
            broke(
                Invariant::I3,
                format!(
                    "{timer} was early: called at {}, due at {}",
                    event.at_ms, asked.due_ms
                ),
            );
        }
        let first = asked.occurrence.get_or_insert_with(|| occurrence.clone());
        if first != occurrence {
            broke(
                Invariant::I2,
                format!("{timer}, version {version}, went out as {first} and as {occurrence}"),
            );
        }
        let owner = self.occurrences.entry(occurrence.clone());
        let owner = owner.or_insert(*version);
        if owner != version {
            broke(
                Invariant::I2,
                format!("versions {owner} and {version} went out as one occurrence, {occurrence}"),
            );
        }
        asked.calls.push(Call {
            at_ms: event.at_ms,
            accepted: (200..300).contains(status),
        });
    }

    /// Whether a call of this version was accepted, up to this time.
    pub(super) fn accepted_by(&self, version: u64, at_ms: u64) -> bool {
        let calls = self.versions.get(&version).map(|asked| &asked.calls);
        calls.is_some_and(|calls| {
            calls
                .iter()
                .any(|call| call.accepted && call.at_ms <= at_ms)
        })
    }

    /// The latest call of this version.
    pub(super) fn last_ms(&self, version: u64) -> Option<u64> {
        let asked = self.versions.get(&version)?;
        asked.calls.iter().map(|call| call.at_ms).max()
    }

    /// How many calls came behind an accepted one of the same version.
    pub(super) fn repeated(&self) -> u64 {
        let repeats = self.versions.values().map(|asked| {
            let behind = asked.calls.iter().skip_while(|call| !call.accepted);
            behind.count().saturating_sub(1) as u64
        });
        repeats.sum()
    }
}

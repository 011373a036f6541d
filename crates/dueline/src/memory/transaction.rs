use std::collections::BTreeMap;

use super::BackendNow;
use super::state::{State, wake_at_ms};
use crate::mutants::{Mutant, planted};
use crate::rows::{PauseKey, lane_head};
use crate::store::{BatchOutcome, Key, Partition, Precondition, Value, Write};

/// The writes of one batch and the journal that takes them back: dropped without
/// [`commit`](Self::commit), on an error or a panic, it leaves no trace.
#[derive(Debug)]
pub(super) struct Transaction<'a> {
    state: &'a mut State,
    partition: &'a Partition,
    /// What each touched key held before the batch.
    before: BTreeMap<Key, Option<Value>>,
}

impl<'a> Transaction<'a> {
    pub(super) fn begin(state: &'a mut State, partition: &'a Partition) -> Self {
        Self {
            state,
            partition,
            before: BTreeMap::new(),
        }
    }

    /// The first precondition that does not hold, as the outcome of the batch.
    pub(super) fn first_failure(
        &self,
        preconditions: &[Precondition],
        now: BackendNow,
    ) -> Option<BatchOutcome> {
        preconditions
            .iter()
            .enumerate()
            .find_map(|(index, precondition)| {
                let lost = |observed: Option<&Value>| {
                    Some(BatchOutcome::PreconditionFailed {
                        index,
                        observed: observed.cloned(),
                    })
                };
                match precondition {
                    Precondition::Absent(key) => match self.get(key) {
                        Some(value) => lost(Some(value)),
                        None => None,
                    },
                    Precondition::Present(key) => match self.get(key) {
                        Some(_) => None,
                        None => lost(None),
                    },
                    Precondition::Equals(key, wanted) => match self.get(key) {
                        Some(value) if value == wanted => None,
                        other => lost(other),
                    },
                    Precondition::NotAfter(last_ms) => {
                        let passed = now.0.is_none_or(|now_ms| now_ms > *last_ms);
                        passed.then(|| BatchOutcome::DeadlinePassed {
                            backend_now_ms: now.0.unwrap_or(u64::MAX),
                        })
                    }
                    Precondition::NotBefore(first_ms) => {
                        let early = now.0.is_none_or(|now_ms| now_ms < *first_ms);
                        early.then(|| BatchOutcome::TooEarly {
                            backend_now_ms: now.or_zero(),
                        })
                    }
                }
            })
    }

    /// Applies one write. Its key goes into the journal first.
    pub(super) fn write(&mut self, write: Write) {
        let (key, value) = match write {
            Write::Put(key, value) => (key, Some(value)),
            Write::Delete(key) => (key, None),
        };
        if !self.before.contains_key(&key) {
            let before = self.get(&key).cloned();
            self.before.insert(key.clone(), before);
        }
        self.state.set(self.partition, key, value);
    }

    /// Bytes the whole store holds with the writes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.state.bytes()
    }

    /// Arms the lanes of the timers that were put and of the pauses that ended, then keeps the
    /// writes.
    pub(super) fn commit(mut self, now: BackendNow) {
        let now_ms = now.or_zero();
        for (key, before) in &self.before {
            let is_there = self.state.get(self.partition, key).is_some();
            if let Some(head) = lane_head(key) {
                if is_there {
                    let at_ms = wake_at_ms(now_ms, head.due_ms);
                    self.state.wakes.arm(self.partition, head.kind, at_ms);
                }
            } else if before.is_some()
                && !is_there
                && !planted(Mutant::ResumeSetsNoWake)
                && let Ok(PauseKey { kind }) = PauseKey::decode(key)
                && let Some(at_ms) = self.state.lane_wants_ms(self.partition, kind, now_ms)
                && (at_ms <= now_ms || !planted(Mutant::ResumeWakesDueAlone))
            {
                self.state.wakes.arm(self.partition, kind, at_ms);
            }
        }
        // Nothing is left to take back.
        self.before.clear();
    }

    fn get(&self, key: &Key) -> Option<&Value> {
        self.state.get(self.partition, key)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        for (key, before) in std::mem::take(&mut self.before) {
            self.state.set(self.partition, key, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_panic_between_two_writes_leaves_no_trace() {
        let mut state = State::default();
        let partition = Partition::new("p").unwrap();
        let mut setup = Transaction::begin(&mut state, &partition);
        setup.write(Write::Put("changed".into(), "1".into()));
        setup.write(Write::Put("deleted".into(), "2".into()));
        setup.commit(BackendNow(Some(0)));
        let before = state.partition(&partition).cloned();
        let bytes = state.bytes();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut transaction = Transaction::begin(&mut state, &partition);
            transaction.write(Write::Put("changed".into(), "new".into()));
            transaction.write(Write::Put("changed".into(), "newer".into()));
            transaction.write(Write::Delete("deleted".into()));
            transaction.write(Write::Put("w\0\x10".into(), "3".into()));
            panic!("halfway");
        }));
        assert!(result.is_err());
        assert_eq!(state.partition(&partition).cloned(), before);
        assert_eq!(state.bytes(), bytes);
        assert_eq!(state.wakes.all(), []);
    }
}

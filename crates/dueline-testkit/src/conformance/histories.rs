//! Random histories of batches, groups, settles and audits, held against a model after every step.

use dueline::store::{Batch, Group, Partition, WakeSettle};
use dueline::timers::{KindSet, TimerKind};
use proptest::test_runner::{Config, TestRunner};

use super::audit::audit;
use super::history::{Model, PARTITIONS, Step, pool, steps};
use super::partitions::walk;
use super::subject::{KIND, NOW_MS, OTHER};
use super::{Make, Subject};
use crate::block_on;

/// How many histories the suite plays; `PROPTEST_CASES` says otherwise.
const CASES: u32 = 64;

/// After every step the rows are the model's, every lane that is not paused has a wake in time, and
/// the audit finds nothing; at the end everything can be taken away without a trace.
pub fn random_histories_keep_the_contract(make: Make<'_>) {
    let cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default().cases,
        None => CASES,
    };
    play_histories(make, cases);
}

/// The same with a number of histories of one's own.
///
/// # Panics
/// With the shortest history found that breaks the contract.
pub fn play_histories(make: Make<'_>, cases: u32) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&steps(), |steps| {
        let mut play = Play::new(make);
        for step in &steps {
            play.step(step);
            play.check();
        }
        play.take_everything_away();
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

struct Play {
    subject: Subject,
    partitions: Vec<Partition>,
    models: Vec<Model>,
    now_ms: u64,
}

impl Play {
    fn new(make: Make<'_>) -> Self {
        let partitions =
            (0..PARTITIONS).map(|index| Partition::new(vec![index as u8]).expect("a name"));
        Self {
            subject: Subject::make(make),
            partitions: partitions.collect(),
            models: vec![Model::default(); PARTITIONS],
            now_ms: NOW_MS,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply { partition, batch } => {
                let expected = self.models[*partition].apply(batch, self.now_ms);
                let outcome = self
                    .subject
                    .apply(&self.partitions[*partition], batch.clone());
                assert_eq!(outcome, expected, "{batch:?}");
            }
            Step::Group {
                partition,
                batches,
                settles,
            } => {
                self.group(*partition, batches.clone(), *settles);
            }
            Step::Serve { limit } => self.serve(*limit),
            Step::Advance { by_ms } => {
                self.subject.clock().advance_ms(*by_ms);
                self.now_ms += by_ms;
            }
            Step::Audit => {
                let (_, repairs) = audit(&self.subject, 2);
                assert_eq!(repairs, 0, "a healthy store needs no repair");
            }
        }
    }

    fn group(&mut self, index: usize, batches: Vec<Batch>, settles: bool) {
        let partition = self.partitions[index].clone();
        let mut expected = Vec::new();
        for batch in &batches {
            let outcome = self.models[index].apply(batch, self.now_ms);
            let stops = !outcome.is_committed();
            expected.push(outcome);
            if stops {
                break;
            }
        }
        let kinds: &[TimerKind] = if settles {
            &[OTHER, TimerKind::INVALID, KIND, TimerKind(77)]
        } else {
            &[]
        };
        let settles: Vec<WakeSettle> = kinds
            .iter()
            .map(|kind| WakeSettle {
                kind: *kind,
                served_ms: self.subject.lane_wakes(&partition, *kind),
            })
            .collect();
        let done = self.subject.group(&partition, Group { batches, settles });
        assert!(done.stopped_by.is_none(), "{:?}", done.stopped_by);
        assert_eq!(done.outcomes, expected);
        let lanes = self.models[index].lanes(self.now_ms);
        assert_eq!(done.next_wakes_ms.len(), kinds.len());
        for (kind, next_ms) in kinds.iter().zip(done.next_wakes_ms) {
            self.check_settled(&partition, *kind, next_ms, lanes.get(kind).copied());
        }
    }

    /// Serves due wakes as a driver does that fires nothing.
    fn serve(&self, limit: usize) {
        let store = self.subject.wake_store();
        let page = block_on(store.due_wakes(&KindSet::all(), self.now_ms, None, limit));
        let mut wakes = page.expect("a page of wakes").wakes;
        wakes.dedup_by(|later, first| {
            (&later.partition, later.kind) == (&first.partition, first.kind)
        });
        for wake in wakes {
            let model = self.partitions.iter().position(|p| *p == wake.partition);
            let lanes = self.models[model.expect("a partition of the history")].lanes(self.now_ms);
            let next_ms = self
                .subject
                .settle(&wake.partition, wake.kind, &[wake.at_ms]);
            self.check_settled(
                &wake.partition,
                wake.kind,
                next_ms,
                lanes.get(&wake.kind).copied(),
            );
        }
    }

    fn check_settled(
        &self,
        partition: &Partition,
        kind: TimerKind,
        next_ms: Option<u64>,
        wanted_ms: Option<u64>,
    ) {
        assert_eq!(
            next_ms.is_some(),
            wanted_ms.is_some(),
            "lane {kind} of {partition}"
        );
        assert!(
            next_ms <= wanted_ms,
            "lane {kind} of {partition}: {next_ms:?} {wanted_ms:?}"
        );
    }

    fn check(&self) {
        let wakes = self.subject.wakes();
        let keys = pool();
        for (partition, model) in self.partitions.iter().zip(&self.models) {
            let rows: Vec<_> = model.rows.clone().into_iter().collect();
            assert_eq!(
                self.subject.rows(partition),
                rows,
                "the rows of {partition}"
            );
            let values = block_on(self.subject.store().get_many(partition, &keys));
            let wanted: Vec<_> = keys
                .iter()
                .map(|key| model.rows.get(key).cloned())
                .collect();
            assert_eq!(
                values.expect("the values"),
                wanted,
                "the values of {partition}"
            );
            for (kind, wanted_ms) in model.lanes(self.now_ms) {
                let first = wakes
                    .iter()
                    .find(|wake| wake.partition == *partition && wake.kind == kind)
                    .map(|wake| wake.at_ms);
                assert!(
                    first.is_some_and(|at_ms| at_ms <= wanted_ms),
                    "lane {kind} of {partition} must be woken by {wanted_ms}, is at {first:?}"
                );
            }
        }
    }

    fn take_everything_away(&self) {
        for (partition, model) in self.partitions.iter().zip(&self.models) {
            let batch = model.rows.keys().fold(Batch::new(), |batch, key| {
                batch.require_present(key.clone()).delete(key.clone())
            });
            self.subject.commit(partition, batch);
        }
        for wake in self.subject.wakes() {
            assert_eq!(
                self.subject
                    .settle(&wake.partition, wake.kind, &[wake.at_ms]),
                None
            );
        }
        assert_eq!(self.subject.wakes(), []);
        assert_eq!(walk(&self.subject, 2), []);
    }
}

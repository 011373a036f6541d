//! The pieces of work, and what their answers say.

use std::time::Duration;

use dueline::runtime::{Clock, Runtime, Sleep};
use dueline::store::{Partition, StoreError, StoreErrorKind, WakeStore};
use dueline::timers::{Engine, Policy, Timer, TimerError, Timers};
use dueline::{BoxFuture, Bytes};
use dueline_testkit::{ManualClock, SequenceEntropy};

use crate::Failure;
use crate::check::Expected;
use crate::world::{Calls, GROUPED, Rows, SINGLE, read_all, run, serve};

/// Sleeps by moving the clock: nobody else would.
#[derive(Debug)]
struct Skip(ManualClock);

impl Sleep for Skip {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.0.clone();
        Box::pin(async move { clock.advance(duration) })
    }
}

pub(crate) fn runtime(clock: &ManualClock) -> Runtime {
    Runtime::new(
        std::sync::Arc::new(clock.clone()) as std::sync::Arc<dyn Clock>,
        std::sync::Arc::new(Skip(clock.clone())),
        std::sync::Arc::new(SequenceEntropy::new(1)),
    )
}

/// What an answer says of the change it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    There,
    NotThere,
    Either,
}

/// What has been answered and read so far.
#[derive(Debug)]
pub(crate) struct Witness {
    /// The rows as they must be now, if that is known.
    pub(crate) seen: Option<Rows>,
    pub(crate) expected: Vec<Expected>,
    /// Whether anything ended in an error.
    pub(crate) refused: bool,
}

/// An error of a failing disk: neither damage, nor a fault of the caller, and in words.
pub(crate) fn check_error(error: &StoreError) -> Result<(), Failure> {
    let fitting = matches!(
        error.kind(),
        StoreErrorKind::Unavailable | StoreErrorKind::Full | StoreErrorKind::Unknown
    );
    if fitting && !error.detail().is_empty() {
        Ok(())
    } else {
        Err(format!("a failing disk is reported as {error:?}").into())
    }
}

impl Witness {
    /// Reads everything; compares with what must be there.
    pub(crate) fn look(&mut self, store: &dyn WakeStore) -> Result<(), Failure> {
        match run(store, read_all(store)) {
            Ok(found) => {
                if let Some(seen) = &self.seen
                    && *seen != found
                {
                    return Err(super::verify::contradiction(seen, &found));
                }
                self.seen = Some(found);
            }
            Err(error) => {
                check_error(&error)?;
                self.refused = true;
            }
        }
        Ok(())
    }

    fn note<T>(&mut self, answer: &Result<T, TimerError>) -> Result<Answer, Failure> {
        let answer = match answer {
            Ok(_) => Answer::There,
            Err(TimerError::Store(error)) => {
                check_error(error)?;
                self.refused = true;
                if error.kind() == StoreErrorKind::Unknown {
                    Answer::Either
                } else {
                    Answer::NotThere
                }
            }
            Err(error) => return Err(format!("a failing disk is reported as {error:?}").into()),
        };
        if answer != Answer::NotThere {
            self.seen = None;
        }
        Ok(answer)
    }

    fn expect(&mut self, partition: &Partition, reference: &str, allowed: Vec<(u64, usize)>) {
        let reference = Bytes::from(reference.to_owned());
        self.expected
            .retain(|known| known.partition != *partition || known.reference != reference);
        self.expected.push(Expected {
            partition: partition.clone(),
            reference,
            allowed,
        });
    }

    /// Schedules a timer and says what is then expected of it.
    pub(crate) fn schedule(
        &mut self,
        store: &dyn WakeStore,
        timers: &Timers,
        partition: &Partition,
        reference: &str,
        named: bool,
    ) -> Result<(), Failure> {
        let timer = Timer::new(GROUPED, reference.to_owned()).due_at(timers.runtime().now_ms());
        let timer = if named { timer.named() } else { timer };
        let answer = run(store, timers.schedule(partition, timer, Policy::Replace));
        let allowed = match self.note(&answer)? {
            Answer::There => vec![(1, 0)],
            Answer::NotThere => vec![(0, 0)],
            Answer::Either => vec![(0, 0), (1, 0)],
        };
        self.expect(partition, reference, allowed);
        self.look(store)
    }

    /// Schedules anew, replaces, moves, cancels and pauses, and reads after each.
    pub(crate) fn verbs(&mut self, store: &dyn WakeStore, timers: &Timers) -> Result<(), Failure> {
        let here = Partition::new("here")?;
        let new = Partition::new("new")?;
        self.schedule(store, timers, &here, "plain-more", false)?;
        self.schedule(store, timers, &new, "named-new", true)?;
        // Its fate is the same before and after: it has not fired yet.
        let base = Bytes::from("plain-base");
        let again = Timer::new(GROUPED, base.clone()).due_at(2_000_000).named();
        let answer = run(store, timers.schedule(&here, again, Policy::Replace));
        self.note(&answer)?;
        self.look(store)?;
        let moved = timers.reschedule(&here, GROUPED, &base, 1_500_000, None);
        let answer = run(store, moved);
        self.note(&answer)?;
        self.look(store)?;
        let single = Bytes::from("single-base");
        let answer = run(store, timers.cancel(&here, SINGLE, &single, None));
        let allowed = match self.note(&answer)? {
            Answer::There if matches!(answer, Ok(None)) => {
                return Err("a timer that is there was not found".into());
            }
            Answer::There => vec![(0, 0)],
            Answer::NotThere => vec![(1, 0)],
            Answer::Either => vec![(0, 0), (1, 0)],
        };
        self.expect(&here, "single-base", allowed);
        self.look(store)?;
        let answer = run(store, timers.pause(&here, SINGLE));
        self.note(&answer)?;
        self.look(store)
    }

    /// Three looks of a driver, some seconds apart, and a read after each.
    pub(crate) fn ticks(
        &mut self,
        store: &dyn WakeStore,
        engine: &Engine,
        clock: &ManualClock,
    ) -> Result<(), Failure> {
        for _ in 0..3 {
            clock.advance_ms(6_000);
            self.seen = None;
            if let Err(error) = run(store, serve(store, engine, Calls::Settle)) {
                check_error(&error)?;
                self.refused = true;
            }
            self.look(store)?;
        }
        Ok(())
    }
}

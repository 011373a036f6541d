use super::cancel::removal_of;
use super::commit::Tries;
use super::draft::Draft;
use super::named::NameEntry;
use super::{Policy, Scheduled, TimerState};
use crate::mutants::{Mutant, planted};
use crate::rows::NameKey;
use crate::store::{Batch, Key, Partition, Value};
use crate::timers::{Timer, TimerError, Timers};

/// A schedule as a batch, to be appended to one of the caller's: state and timer commit together.
///
/// Holds at most two preconditions and three writes. A plan that keeps what is there writes nothing
/// and still guards it, so that the caller's state is not committed beside a timer that is gone. Two plans for
/// one name do not share a batch: every store refuses that as `Invalid`.
///
/// ```
/// use std::sync::Arc;
/// use dueline::memory::MemoryStore;
/// use dueline::store::{Batch, BatchOutcome, NamespaceStore, Partition};
/// use dueline::timers::{Explained, Policy, Timer, TimerKind, Timers};
/// use dueline_testkit::{ManualClock, block_on, test_runtime};
///
/// const EXPIRE: TimerKind = TimerKind(16);
/// let clock = ManualClock::new(1_000);
/// let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
/// let timers = Timers::new(store.clone(), test_runtime(&clock));
/// let tenant = Partition::new("tenant-7")?;
/// let timer = Timer::new(EXPIRE, "order-42").due_at(61_000).named();
///
/// let mut plan = timers.plan_new(&timer)?;
/// let created = loop {
///     let order = Batch::new().require_absent("order-42").put("order-42", "held");
///     let offset = order.preconditions.len();
///     match block_on(store.apply(&tenant, order.append(plan.batch)))? {
///         BatchOutcome::PreconditionFailed { index, observed } => {
///             match plan.guards.explain(offset, index, observed) {
///                 Explained::TimerChanged(seen) => {
///                     plan = block_on(timers.plan_again(&tenant, &timer, Policy::Replace, seen))?;
///                 }
///                 Explained::Caller { .. } => break false,
///             }
///         }
///         _ => break true,
///     }
/// };
/// assert!(created);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Plan {
    /// What to append. Its preconditions and writes stay together and in order.
    pub batch: Batch,
    /// How the timer stands once the batch has committed.
    pub scheduled: Scheduled,
    /// Says of a lost guard whose it was.
    pub guards: PlanGuards,
}

/// The guards of a [`Plan`].
#[derive(Clone, Debug)]
pub struct PlanGuards {
    pub(super) named: bool,
    pub(super) count: usize,
    pub(super) seen: SeenName,
}

/// What is known of a name: where the next plan starts from, without a read. Opaque.
#[derive(Clone, Debug, Default)]
pub struct SeenName(Option<Value>);

/// Whose guard was lost.
#[derive(Clone, Debug)]
pub enum Explained {
    /// The timer's: another writer changed it, or the key drawn for it was taken. Nothing of the
    /// batch is written; [`Timers::plan_again`] with this.
    TimerChanged(SeenName),
    /// One of the caller's.
    Caller {
        /// Its position among the caller's own preconditions.
        index: usize,
    },
}

impl Plan {
    /// Says whose guard was lost: see [`PlanGuards::explain`].
    pub fn explain(&self, offset: usize, index: usize, observed: Option<Value>) -> Explained {
        self.guards.explain(offset, index, observed)
    }

    /// What to append to cancel the timer that the plan has found, in place of scheduling this one: as
    /// [`Timers::plan_cancel`], for whoever plans both. `timer` is the one that was planned, by any policy.
    ///
    /// # Errors
    /// What is stored does not decode.
    pub fn into_cancel(self, timer: &Timer) -> Result<Batch, TimerError> {
        let name = timer.name();
        let seen = self.guards.seen.entry(&name)?;
        Ok(removal_of(&name, seen.as_ref()))
    }
}

impl Plan {
    /// The same if the timer that it has found under the name is this generation.
    pub(super) fn if_match(
        self,
        timer: &Timer,
        generation: Option<u64>,
    ) -> Result<Self, TimerError> {
        if generation.is_some() {
            let seen = self.guards.seen.clone().entry(&timer.name())?;
            let entry = seen.ok_or(TimerError::NotFound)?;
            entry.require_generation(generation)?;
        }
        Ok(self)
    }
}

impl PlanGuards {
    /// Says whose guard was lost. `offset` is how many preconditions stood before the plan's in the
    /// batch that was applied; `index` and `observed` are those of
    /// [`PreconditionFailed`](crate::store::BatchOutcome::PreconditionFailed).
    pub fn explain(&self, offset: usize, index: usize, observed: Option<Value>) -> Explained {
        match index.checked_sub(offset) {
            None => Explained::Caller { index },
            Some(own) if own >= self.count => Explained::Caller {
                index: index.saturating_sub(self.count),
            },
            Some(0) if self.named => Explained::TimerChanged(SeenName(observed)),
            Some(_) => Explained::TimerChanged(self.seen.clone()),
        }
    }

    /// Whether a lost guard of this position, the plan's alone, was that of the new key.
    pub(super) fn is_collision(&self, own: usize) -> bool {
        own > 0 || !self.named
    }
}

impl SeenName {
    pub(super) fn of(entry: Option<&NameEntry>) -> Self {
        Self(entry.map(|entry| entry.value.clone()))
    }

    /// A name as it was just read.
    pub(super) fn read(value: Option<Value>) -> Self {
        Self(value)
    }

    pub(super) fn entry(self, name: &NameKey) -> Result<Option<NameEntry>, TimerError> {
        self.0
            .map(|value| NameEntry::decode(name, value))
            .transpose()
    }
}

/// What the policy asks for, given what is known of the name.
enum Step {
    /// This, at once.
    Draft(Draft),
    /// Nothing: what is there stays.
    Keep,
    /// The row of this key has to be read first.
    Read(Key),
}

/// Looks the cell up in the policy table.
fn step(timer: &Timer, policy: Policy, seen: Option<&NameEntry>) -> Step {
    let Some(entry) = seen else {
        return Step::Draft(Draft::as_asked(timer, None));
    };
    let is_later = entry.row.due_ms <= timer.due_at_ms;
    match (policy, entry.state()) {
        (_, TimerState::Claimed) if planted(Mutant::RunningLosesRequest) => Step::Keep,
        (Policy::KeepEarliest, TimerState::Pending)
            if is_later && planted(Mutant::LaterKickWritesNothing) =>
        {
            Step::Keep
        }
        (Policy::KeepEarliest, TimerState::Dead) if planted(Mutant::KickOfDeadWritesNothing) => {
            Step::Keep
        }
        (Policy::IfAbsent, _) => Step::Keep,
        (Policy::KeepEarliest, TimerState::Pending | TimerState::Retrying) => {
            Step::Read(entry.target())
        }
        (Policy::Replace | Policy::KeepEarliest, _) => {
            Step::Draft(Draft::as_asked(timer, Some(entry)))
        }
    }
}

impl Timers {
    /// Plans a schedule: reads the name, if the timer has one, and returns the batch to append.
    ///
    /// # Errors
    /// `Invalid` for a timer over a limit, `Contended`, and what the store says.
    pub async fn plan(
        &self,
        partition: &Partition,
        timer: &Timer,
        policy: Policy,
    ) -> Result<Plan, TimerError> {
        timer.validate()?;
        let seen = if timer.named {
            let name = timer.name();
            SeenName::read(self.store().get(partition, &name.encode()).await?)
        } else {
            SeenName::default()
        };
        self.plan_again(partition, timer, policy, seen).await
    }

    /// Plans a schedule of a name that is most likely new, without a read: guarded by the absence of
    /// the name. If that guard is lost, [`plan_again`](Self::plan_again).
    ///
    /// # Errors
    /// `Invalid` for a timer over a limit.
    pub fn plan_new(&self, timer: &Timer) -> Result<Plan, TimerError> {
        timer.validate()?;
        Ok(self.place(Draft::as_asked(timer, None), None))
    }

    /// Plans a schedule from what a lost guard has shown of the name, in most cases without a read.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub async fn plan_again(
        &self,
        partition: &Partition,
        timer: &Timer,
        policy: Policy,
        seen: SeenName,
    ) -> Result<Plan, TimerError> {
        timer.validate()?;
        let name = timer.name();
        let mut seen = seen.entry(&name)?;
        let mut tries = Tries::default();
        loop {
            let draft = match step(timer, policy, seen.as_ref()) {
                Step::Draft(draft) => draft,
                Step::Keep => {
                    if let Some(entry) = &seen {
                        return Ok(keep(entry));
                    }
                    Draft::as_asked(timer, None)
                }
                Step::Read(target) => {
                    let found = self.store().get(partition, &target).await?;
                    match (&seen, found) {
                        (Some(entry), Some(value)) => Draft::kicked(timer, entry, &value)?,
                        // A move fell between the two reads.
                        _ => {
                            tries.changed()?;
                            seen = self.read_name(partition, &name).await?;
                            continue;
                        }
                    }
                }
            };
            return Ok(self.place(draft, seen.as_ref()));
        }
    }
}

/// A plan that writes nothing and guards what is there.
fn keep(entry: &NameEntry) -> Plan {
    Plan {
        batch: Batch::new().require_equals(entry.name.encode(), entry.value.clone()),
        scheduled: Scheduled::kept(entry),
        guards: PlanGuards {
            named: true,
            count: 1,
            seen: SeenName::of(Some(entry)),
        },
    }
}

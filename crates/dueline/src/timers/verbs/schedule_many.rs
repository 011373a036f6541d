use super::commit::Commit;
use super::plan::{Explained, Plan, SeenName};
use super::{Policy, ScheduleOutcome, Scheduled};
use crate::limits::{BATCH_BYTES_MAX, BATCH_OPS_MAX};
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedSet;
use crate::store::{Batch, Key, Partition, StoreError, StoreErrorKind};
use crate::timers::{Timer, TimerError, Timers};

/// Timers planned and committed together, and the bytes of payload behind which a group is closed:
/// they bound one transaction and what lies in memory.
const GROUP_TIMERS: usize = 256;
const GROUP_BYTES: usize = 8 * 1_024 * 1_024;

type Answer = Result<Scheduled, TimerError>;

/// A timer of the call: where its answer goes.
#[derive(Debug)]
struct Item {
    index: usize,
    timer: Timer,
    policy: Policy,
}

/// Timers whose plans share one batch.
#[derive(Debug, Default)]
struct Pack {
    batch: Batch,
    members: Vec<(Item, Plan)>,
}

impl Pack {
    fn has_room_for(&self, plan: &Plan) -> bool {
        self.batch.ops() + plan.batch.ops() <= BATCH_OPS_MAX
            && self.batch.bytes() + plan.batch.bytes() <= BATCH_BYTES_MAX
    }

    fn add(&mut self, item: Item, plan: Plan) {
        self.batch = std::mem::take(&mut self.batch).append(plan.batch.clone());
        self.members.push((item, plan));
    }

    /// Which member a lost guard belongs to, and what it shows of its name.
    fn loser(&self, commit: Commit) -> Option<(usize, SeenName)> {
        let Commit::Lost { index, observed } = commit else {
            return None;
        };
        let mut offset = 0;
        for (position, (_, plan)) in self.members.iter().enumerate() {
            let guards = plan.batch.preconditions.len();
            if index < offset + guards {
                return match plan.explain(offset, index, observed) {
                    Explained::TimerChanged(seen) => Some((position, seen)),
                    Explained::Caller { .. } => None,
                };
            }
            offset += guards;
        }
        None
    }
}

impl Timers {
    /// Schedules many timers, one answer each, in their order. What [`schedule`](Self::schedule)
    /// would do one after the other, in few transactions: one that is invalid or loses a guard does
    /// not hold up the others, and of two of one name the later one counts.
    ///
    /// It is not one transaction: when the store refuses one, some are there and others not, as
    /// their answers say; those that would have shared its transactions end in the same error.
    pub async fn schedule_many(
        &self,
        partition: &Partition,
        timers: Vec<(Timer, Policy)>,
    ) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = timers.iter().map(|_| None).collect();
        let mut names = OrderedSet::new();
        let mut group = Vec::new();
        let mut bytes = 0_usize;
        for (index, (timer, policy)) in timers.into_iter().enumerate() {
            if let Err(error) = timer.validate() {
                put(&mut answers, index, Err(error));
                continue;
            }
            let name = timer.named.then(|| timer.name().encode());
            let repeats = name.as_ref().is_some_and(|name| names.contains(name));
            if repeats || group.len() == GROUP_TIMERS || bytes >= GROUP_BYTES {
                self.run_group(partition, std::mem::take(&mut group), &mut answers)
                    .await;
                names.clear();
                bytes = 0;
            }
            names.extend(name);
            bytes += timer.payload.len();
            group.push(Item {
                index,
                timer,
                policy,
            });
        }
        self.run_group(partition, group, &mut answers).await;
        answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(|| Err(not_tried())))
            .collect()
    }

    /// Runs timers of different names: reads the names at once, plans, packs, commits.
    async fn run_group(
        &self,
        partition: &Partition,
        items: Vec<Item>,
        answers: &mut [Option<Answer>],
    ) {
        let mut packs = match self.pack(partition, &items, answers).await {
            Ok(plans) => fill(items, plans),
            Err(error) => {
                for item in items {
                    put(answers, item.index, Err(error.clone()));
                }
                return;
            }
        };
        while !packs.is_empty() {
            let batches: Vec<Batch> = packs.iter().map(|pack| pack.batch.clone()).collect();
            let mut done = self.store().apply_all(partition, batches.into()).await;
            let written = if planted(Mutant::BulkLostIsWritten) {
                done.outcomes.len()
            } else {
                done.committed().min(packs.len())
            };
            let mut rest = packs.split_off(written);
            for (item, plan) in packs.into_iter().flat_map(|pack| pack.members) {
                put(answers, item.index, Ok(plan.scheduled));
            }
            if let Some(error) = done.stopped_by {
                stop(rest, &error, answers);
                return;
            }
            if rest.is_empty() {
                return;
            }
            let lost = rest.remove(0);
            let commit = match done.outcomes.pop().map(Commit::of) {
                Some(Ok(commit)) => commit,
                Some(Err(error)) => {
                    rest.insert(0, lost);
                    stop(rest, &error, answers);
                    return;
                }
                None => Commit::Written,
            };
            self.run_alone(partition, lost, commit, answers).await;
            packs = rest;
        }
    }

    /// Plans each timer from its name as it is now; one that stays as it is gets its answer.
    async fn pack(
        &self,
        partition: &Partition,
        items: &[Item],
        answers: &mut [Option<Answer>],
    ) -> Result<Vec<Option<Plan>>, TimerError> {
        let names: Vec<Key> = items
            .iter()
            .filter(|item| item.timer.named)
            .map(|item| item.timer.name().encode())
            .collect();
        let mut seen = if names.is_empty() {
            Vec::new()
        } else {
            self.store().get_many(partition, &names).await?
        }
        .into_iter();
        let mut plans = Vec::with_capacity(items.len());
        for item in items {
            let seen = if item.timer.named {
                SeenName::read(seen.next().flatten())
            } else {
                SeenName::default()
            };
            let planned = self
                .plan_again(partition, &item.timer, item.policy, seen)
                .await;
            plans.push(match planned {
                Ok(plan) if plan.scheduled.outcome == ScheduleOutcome::Kept => {
                    put(answers, item.index, Ok(plan.scheduled));
                    None
                }
                Ok(plan) => Some(plan),
                Err(error) => {
                    put(answers, item.index, Err(error));
                    None
                }
            });
        }
        Ok(plans)
    }

    /// Runs the timers of a batch that lost a guard one by one.
    async fn run_alone(
        &self,
        partition: &Partition,
        pack: Pack,
        commit: Commit,
        answers: &mut [Option<Answer>],
    ) {
        let loser = pack.loser(commit);
        for (position, (item, plan)) in pack.members.into_iter().enumerate() {
            let seen = match &loser {
                Some((lost, seen)) if *lost == position => seen.clone(),
                _ => plan.guards.seen,
            };
            let answer = self
                .schedule_from(partition, &item.timer, item.policy, seen)
                .await;
            put(answers, item.index, answer);
        }
    }
}

fn fill(items: Vec<Item>, plans: Vec<Option<Plan>>) -> Vec<Pack> {
    let mut packs = Vec::new();
    let mut open = Pack::default();
    for (item, plan) in items.into_iter().zip(plans) {
        let Some(plan) = plan else { continue };
        if !open.has_room_for(&plan) {
            packs.push(std::mem::take(&mut open));
        }
        open.add(item, plan);
    }
    if !open.members.is_empty() {
        packs.push(open);
    }
    packs
}

/// Answers the packs that an error has stopped. Only `Unknown` leaves open whether they are there.
fn stop(packs: Vec<Pack>, error: &StoreError, answers: &mut [Option<Answer>]) {
    for (item, _) in packs.into_iter().flat_map(|pack| pack.members) {
        put(answers, item.index, Err(error.clone().into()));
    }
}

fn put(answers: &mut [Option<Answer>], index: usize, answer: Answer) {
    if let Some(place) = answers.get_mut(index) {
        *place = Some(answer);
    }
}

fn not_tried() -> TimerError {
    StoreError::new(StoreErrorKind::Unavailable, "the timer was not tried").into()
}

//! Rules that hold in a simulation beside the invariants of every history: what needs the true time, the
//! worlds in which nothing stands in the way, or what a run knows beside its history.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dueline::rows::{NameState, class, is_of_class};
use dueline_history::book::{Book, Change, Place};
use dueline_history::{
    Checker, Commit, Ended, Findings, Invariant, Occurrence, Octets, Outcome, Policy, Run, Seen,
    Source, Tick, Told, VerbName, What,
};
use dueline_testkit::model::script::{KINDS, Op, chain_key, op_of};

use crate::plan::Plan;
use crate::recorder::Hidden;

/// Fires and rows of a budget beyond which no simulation comes.
const PLENTY: u64 = 10_000;
/// Lanes that a partition can have: all kinds, and the rows that name none.
const LANES_MAX: u64 = 6;
/// A call may begin so late, and its deadline less, in milliseconds; a commit may take as long again.
const LATE_START_MS: u64 = 5_000;
/// So many failures do not back off for the same time by chance.
const SAME_DELAYS_MAX: usize = 8;

/// All of them.
#[derive(Debug)]
pub(crate) struct Watch {
    hidden: Hidden,
    has_true_clocks: bool,
    is_object: bool,
    calls_once: bool,
    is_local: bool,
    is_prompt: bool,
    jitters: bool,
    initial_ms: u64,
    /// In which turn an occurrence was put.
    put_in: BTreeMap<(Octets, Occurrence), u64>,
    /// The rows of the timer class.
    timers: BTreeMap<Octets, BTreeSet<Bytes>>,
    /// The last number of each chain.
    chains: BTreeMap<(Octets, u8), u64>,
    /// Occurrences whose call was answered, and whether its settle was planned since.
    answered: BTreeMap<(Octets, Occurrence), bool>,
    /// How long those backed off that failed for the first time.
    delays_ms: Vec<u64>,
    /// Commits in doubt: who had them, where, and since which event.
    doubts: BTreeMap<Octets, usize>,
    /// The last event at which a partition was read for a client.
    read_at: BTreeMap<Octets, usize>,
}

impl Watch {
    pub(crate) fn new(plan: &Plan, hidden: Hidden) -> Self {
        let world = &plan.world;
        Self {
            hidden,
            has_true_clocks: plan.has_true_clocks(),
            is_object: world.object.is_some(),
            calls_once: world.calls_once && world.object.is_none(),
            is_local: !world.is_remote,
            is_prompt: world.faults.very_slow == 0,
            jitters: world.retry.jitter_percent >= 20 && world.retry.initial_ms >= 400,
            initial_ms: world.retry.initial_ms,
            put_in: BTreeMap::new(),
            timers: BTreeMap::new(),
            chains: BTreeMap::new(),
            answered: BTreeMap::new(),
            delays_ms: Vec::new(),
            doubts: BTreeMap::new(),
            read_at: BTreeMap::new(),
        }
    }
}

impl Checker for Watch {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let index = seen.index;
        match &seen.event.what {
            What::Commit(commit) => {
                self.same_tick(seen, commit, broken);
                self.put_over(seen, commit, broken);
                self.chained(seen, commit, broken);
                self.backs_off(seen, commit, broken);
                self.own_name(seen, commit, broken);
                self.late_start(seen, commit, broken);
                self.found_again(seen, commit, broken);
                kicked(seen, commit, broken);
            }
            // The partitions of an object share one budget: a tick may find nothing left.
            What::Tick(tick) if !self.is_object => fair(index, tick, broken),
            What::Called(run) => self.called(seen, run, broken),
            What::Fire(run) => {
                let is_planned = matches!(run.ended, Ended::Done | Ended::Reschedule | Ended::Dead);
                if let Some(settled) = self.answered.get_mut(&timer_of(run)) {
                    *settled = is_planned;
                }
            }
            What::Fault {
                partition: Some(partition),
                ..
            } => {
                self.doubts.insert(partition.clone(), index);
            }
            What::Told {
                request,
                told:
                    Told::Ok {
                        outcome: Outcome::Found | Outcome::NotFound,
                        ..
                    },
            } => {
                let request = seen.book.requests.get(request);
                if let Some(it) = request.filter(|it| it.verb.verb == VerbName::Get) {
                    self.read_at.insert(it.verb.partition.clone(), index);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, book: &Book, length: usize, broken: &mut Findings) {
        for (partition, promised) in &self.hidden.promised {
            let was_there = book.partitions.get(partition).is_some_and(|it| {
                it.places.contains_key(promised) || it.gone.contains_key(promised)
            });
            if !was_there {
                let text = format!("scheduled with many others and never there: {promised:?}");
                broken.add(Invariant::I1, length, text);
            }
        }
        let first = self.delays_ms.first();
        if self.jitters
            && self.delays_ms.len() >= SAME_DELAYS_MAX
            && self
                .delays_ms
                .iter()
                .all(|delay_ms| Some(delay_ms) == first)
        {
            let count = self.delays_ms.len();
            let text = format!("{count} failures all back off for {first:?} ms");
            broken.add(Invariant::I13, length, text);
        }
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

fn took_effect(commit: &Commit, of: &Occurrence) -> bool {
    commit.effects.iter().any(|mark| mark.occurrence == *of)
}

impl Watch {
    /// What a tick puts runs in the next.
    fn same_tick(&mut self, seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
        // An object ticks several times under one number.
        if commit.turn == 0 || self.is_object {
            return;
        }
        for change in &seen.applied.changes {
            match change {
                Change::New { to } => {
                    let of = (commit.partition.clone(), to.occurrence.clone());
                    self.put_in.insert(of, commit.turn);
                }
                Change::Gone { from } if took_effect(commit, &from.occurrence) => {
                    let of = (commit.partition.clone(), from.occurrence.clone());
                    if self.put_in.get(&of) == Some(&commit.turn) {
                        let text = format!("took effect in the tick that put it: {from:?}");
                        broken.add(Invariant::I11, seen.index, text);
                    }
                }
                _ => {}
            }
        }
    }

    /// No timer is put where another lies.
    fn put_over(&mut self, seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
        if !self.timers.contains_key(&commit.partition) {
            self.timers
                .insert(commit.partition.clone(), BTreeSet::new());
        }
        let Some(timers) = self.timers.get_mut(&commit.partition) else {
            return;
        };
        let verb = commit.request.and_then(|it| seen.book.requests.get(&it));
        let may_write = verb.is_some_and(|it| it.verb.verb == VerbName::Write);
        for (key, value) in &commit.rows {
            if !is_of_class(key, class::TIMER) {
                continue;
            }
            if value.is_none() {
                timers.remove(&key.0);
            } else if !timers.insert(key.0.clone()) && !may_write {
                let text = format!("a timer was put where another lies: {key:?}");
                broken.add(Invariant::I6, seen.index, text);
            }
        }
    }

    /// Every run of a chain counts on from the one that committed before it.
    fn chained(&mut self, seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
        if !self.is_local || commit.effects.is_empty() {
            return;
        }
        for kind in KINDS.iter().take(3) {
            let key = chain_key(*kind);
            let Some((_, Some(value))) = commit.rows.iter().find(|(it, _)| it.0 == key) else {
                continue;
            };
            let number = std::str::from_utf8(value)
                .ok()
                .and_then(|it| it.parse().ok());
            let number: u64 = number.unwrap_or(0);
            let lane = (commit.partition.clone(), kind.0);
            let before = self.chains.insert(lane, number).unwrap_or(0);
            if number != before + 1 {
                let text = format!("a run that follows {before} wrote {number}");
                broken.add(Invariant::I2, seen.index, text);
            }
        }
    }

    /// Notes how long those back off whose handler failed for the first time.
    fn backs_off(&mut self, seen: &Seen<'_>, commit: &Commit, _: &mut Findings) {
        if commit.source != Source::Engine {
            return;
        }
        for change in &seen.applied.changes {
            let Change::Moved { to, .. } = change else {
                continue;
            };
            let Some(failure) = to.header.as_ref().and_then(|it| it.failure.as_ref()) else {
                continue;
            };
            let is_first = to.dead.is_none() && !to.is_claimed() && to.attempt() == 1;
            if is_first && failure.error.contains("as told") {
                let delay_ms = to.at_ms.saturating_sub(failure.at_ms);
                // Places that were taken add a few milliseconds.
                if delay_ms <= 2 * self.initial_ms {
                    self.delays_ms.push(delay_ms);
                }
            }
        }
    }

    /// A handler's batch that writes the name of its own timer never takes effect.
    fn own_name(&mut self, seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
        for mark in &commit.effects {
            let Some(from) = seen.applied.before(&mark.occurrence) else {
                continue;
            };
            let fails = op_of(&from.payload).is_some_and(|(op, times)| {
                op == Op::OwnName && from.is_named() && mark.attempt <= u16::from(times)
            });
            if fails {
                let text = format!("a handler has written its own name: {from:?}");
                broken.add(Invariant::I15, seen.index, text);
            }
        }
    }

    /// A call that is begun in time is begun, whatever the wall clock does.
    fn late_start(&mut self, seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
        if !self.is_prompt {
            return;
        }
        for change in &seen.applied.changes {
            let Change::Moved { from, to } = change else {
                continue;
            };
            let failure = to.header.as_ref().and_then(|it| it.failure.as_ref());
            let says_late = failure.is_some_and(|it| it.error.contains("could not begin"));
            let waited_ms = seen.event.at_ms.saturating_sub(from.put.at_ms);
            if from.is_claimed() && says_late && waited_ms < LATE_START_MS && commit.turn == 0 {
                let text = format!("began too late after {waited_ms} ms: {from:?}");
                broken.add(Invariant::I13, seen.index, text);
            }
        }
    }

    /// A store on the node's own disk settles what is in doubt before it serves anybody.
    fn found_again(&mut self, seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
        if !self.is_local || !commit.landed_late {
            return;
        }
        let doubt = self.doubts.get(&commit.partition);
        let read = self.read_at.get(&commit.partition);
        if let (Some(doubt), Some(read)) = (doubt, read)
            && read > doubt
        {
            let text = format!("was read at event {read} and then what was in doubt came back");
            broken.add(Invariant::I5, seen.index, text);
        }
    }

    /// A call ends before its claim does, and none goes out again while it runs or behind its answer.
    fn called(&mut self, seen: &Seen<'_>, run: &Run, broken: &mut Findings) {
        let mut broke = |text: &str| {
            broken.add(Invariant::I6, seen.index, format!("{text}: {run:?}"));
        };
        let timer = timer_of(run);
        if self.has_true_clocks {
            let partition = seen.book.partitions.get(&run.partition);
            let place = partition.and_then(|it| it.places.get(&timer.1));
            if let Some(place) = place.filter(|place| place.is_claimed()) {
                if place.attempt() > run.attempt {
                    broke("was claimed again while its call ran");
                } else if place.attempt() == run.attempt && seen.event.at_ms > place.at_ms {
                    broke("ran beyond the end of its claim");
                }
            }
        }
        if self.calls_once {
            if self.answered.get(&timer) == Some(&true) {
                broke("went out again behind its answer");
            }
            if run.ended == Ended::Done {
                self.answered.insert(timer, false);
            }
        }
    }
}

/// A kick does not make a timer that backs off due earlier.
fn kicked(seen: &Seen<'_>, commit: &Commit, broken: &mut Findings) {
    let request = commit.request.and_then(|it| seen.book.requests.get(&it));
    let is_kick = request.is_some_and(|it| it.verb.policy == Some(Policy::KeepEarliest));
    if !is_kick {
        return;
    }
    for change in &seen.applied.changes {
        let Change::Gone { from } = change else {
            continue;
        };
        let backs_off = |place: &Place| {
            let name = place.name_row();
            name.is_some_and(|it| it.state == NameState::Retrying)
        };
        if let Some(to) = seen.applied.next_of(&from.occurrence)
            && backs_off(from)
            && to.at_ms < from.at_ms
        {
            let text = format!("a kick has shortened a back-off: {from:?} became {to:?}");
            broken.add(Invariant::I13, seen.index, text);
        }
    }
}

/// Every lane of a tick has its share, and a tick that has all it may ask for does not stop.
fn fair(index: usize, tick: &Tick, broken: &mut Findings) {
    if tick.held_back || tick.elapsed_ms > 0 {
        return;
    }
    let budget = tick.budget;
    if tick.stopped_on_budget
        && budget.fired >= PLENTY
        && budget.scanned >= PLENTY
        && budget.elapsed_ms > LANES_MAX
    {
        let text = format!("stopped, and nothing was used up: {tick:?}");
        broken.add(Invariant::I10, index, text);
    }
    if budget.fired < LANES_MAX {
        return;
    }
    for counts in tick.kinds.iter().filter(|it| it.kind != KINDS[3].0) {
        let did = counts.progressed() + counts.raced + counts.unknown_outcome + counts.held;
        if counts.deferred > 0 && did == 0 {
            let text = format!("kind {} got nothing: {tick:?}", counts.kind);
            broken.add(Invariant::I10, index, text);
        }
    }
}

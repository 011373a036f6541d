//! Holds what clients and receivers saw to the promises, in one pass over the events and a second over
//! the timers. Which invariant a rule belongs to stands where it is broken.

mod calls;
mod timer;

use std::collections::BTreeMap;

use crate::book::Book;
use crate::check::{Broken, Checker, Findings, Invariant, Seen, check_all};
use crate::{Answered, Event, ListedTimer, Operation, What};
use calls::Calls;
use timer::{Rules, Timer};

/// What a checked history came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Every promise that was broken; empty is right.
    pub broken: Vec<Broken>,
    /// What the history held: one in which nothing happened proves nothing.
    pub figures: Figures,
}

/// How much happened in a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Kills of the server.
    pub kills: u64,
    /// Timers that were asked for.
    pub timers: u64,
    /// Schedules and replacements that were acknowledged.
    pub schedules: u64,
    /// Cancels that were acknowledged as done.
    pub cancels: u64,
    /// Lists that were answered.
    pub lists: u64,
    /// Requests that got no answer, repeats included.
    pub unknown: u64,
    /// Calls that the receiver got.
    pub calls: u64,
    /// Calls of an occurrence behind one that the receiver had accepted.
    pub repeated_calls: u64,
}

impl Figures {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            kills: self.kills + other.kills,
            timers: self.timers + other.timers,
            schedules: self.schedules + other.schedules,
            cancels: self.cancels + other.cancels,
            lists: self.lists + other.lists,
            unknown: self.unknown + other.unknown,
            calls: self.calls + other.calls,
            repeated_calls: self.repeated_calls + other.repeated_calls,
        }
    }
}

/// Checks a whole history, from its `begin` to its end, by every invariant. What clients and receivers
/// saw is held to these rules:
///
/// * No acknowledged timer is lost: unless it was replaced or cancelled, a call of it was accepted.
/// * No call comes before its due.
/// * All calls of one version carry one occurrence, and no two versions share one.
/// * A cancel or a replacement that was acknowledged is final: no later call of what it removed,
///   but for one that was under way at the time.
/// * A request without an answer was done or was not: what is seen later agrees with one of the two,
///   and with the same one each time.
/// * A list holds every timer that is there, and none that is not.
/// * In the end nothing is left, `doctor` is content, and the files are no larger than they may be.
pub fn check(history: &[Event]) -> Verdict {
    let mut clients = Clients::default();
    let mut findings = Findings::default();
    for (index, event) in history.iter().enumerate() {
        clients.see(index, event, &mut findings);
    }
    Verdict {
        broken: check_all(history),
        figures: clients.figures(),
    }
}

/// What the clients and the receivers of a server know.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    rules: Rules,
    requests: BTreeMap<u64, Request>,
    timers: BTreeMap<String, Timer>,
    calls: Calls,
    counted: Figures,
    has_begun: bool,
}

impl Checker for Clients {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        self.see(seen.index, seen.event, broken);
    }

    fn end(&mut self, _book: &Book, length: usize, broken: &mut Findings) {
        if !self.has_begun {
            let text = "the history has no beginning: no seed, and no rules";
            broken.add(Invariant::I18, length, text);
        }
        for (id, timer) in &self.timers {
            for (invariant, rule) in timer.end(&self.calls, self.rules) {
                broken.add(invariant, length, format!("{id} {rule}"));
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Request {
    operation: Operation,
    invoked_ms: u64,
    had_no_answer: bool,
}

impl Clients {
    fn see(&mut self, index: usize, event: &Event, broken: &mut Findings) {
        let mut broke = |invariant, text: String| broken.add(invariant, index, text);
        match &event.what {
            What::Begin {
                deadline_ms,
                lag_ms,
                ..
            } => {
                self.has_begun = true;
                self.rules = Rules {
                    deadline_ms: *deadline_ms,
                    lag_ms: *lag_ms,
                };
            }
            What::Killed => self.counted.kills += 1,
            What::Invoke { request, operation } => {
                self.invoke(event.at_ms, *request, operation, &mut broke);
            }
            What::Answer { request, answered } => {
                self.answer(event.at_ms, *request, answered, &mut broke);
            }
            What::Call { .. } => {
                self.counted.calls += 1;
                self.calls.take(event, &mut broke);
            }
            What::Quiet {
                timers,
                dead_letters,
                findings,
                file_bytes,
                file_bytes_max,
            } => {
                if *timers > 0 || *dead_letters > 0 {
                    let left = format!("{timers} timers, {dead_letters} dead letters");
                    broke(Invariant::I1, format!("left at the end: {left}"));
                }
                for finding in findings {
                    broke(Invariant::I15, format!("doctor is not content: {finding}"));
                }
                if file_bytes > file_bytes_max {
                    let text = format!(
                        "the files have {file_bytes} bytes, {file_bytes_max} at most were expected"
                    );
                    broke(Invariant::I15, text);
                }
            }
            // What engines see is held to rules of its own.
            _ => {}
        }
    }

    fn figures(&self) -> Figures {
        Figures {
            timers: self.timers.len() as u64,
            repeated_calls: self.calls.repeated(),
            ..self.counted
        }
    }

    fn invoke(
        &mut self,
        at_ms: u64,
        request: u64,
        operation: &Operation,
        broke: &mut impl FnMut(Invariant, String),
    ) {
        let known = self.requests.entry(request).or_insert_with(|| Request {
            operation: operation.clone(),
            invoked_ms: at_ms,
            had_no_answer: false,
        });
        if known.operation != *operation {
            let text = format!("request {request} was used for two operations");
            broke(Invariant::I5, text);
            return;
        }
        if let Operation::Schedule {
            timer,
            version,
            due_ms,
        } = operation
        {
            self.calls.asked_for(*version, timer, *due_ms);
            self.timers.entry(timer.clone()).or_default();
        }
    }

    fn answer(
        &mut self,
        at_ms: u64,
        request: u64,
        answered: &Answered,
        broke: &mut impl FnMut(Invariant, String),
    ) {
        let Some(known) = self.requests.get_mut(&request) else {
            let text = format!("request {request} was answered and never sent");
            broke(Invariant::I5, text);
            return;
        };
        if *answered == Answered::Unknown {
            known.had_no_answer = true;
            self.counted.unknown += 1;
            match &known.operation {
                Operation::Schedule { timer, version, .. } => {
                    let timer = self.timers.entry(timer.clone()).or_default();
                    timer.perhaps_scheduled(*version);
                }
                Operation::Cancel { timer, .. } => {
                    let timer = self.timers.entry(timer.clone()).or_default();
                    timer.perhaps_cancelled();
                }
                Operation::List { .. } => {}
            }
            return;
        }
        let known = known.clone();
        self.requests.remove(&request);
        let figures = &mut self.counted;
        match (&known.operation, answered) {
            (
                Operation::Schedule { timer, version, .. },
                Answered::Created | Answered::Replaced,
            ) => {
                figures.schedules += 1;
                let created = *answered == Answered::Created;
                let timer = self.timers.entry(timer.clone()).or_default();
                timer.scheduled(at_ms, *version, created);
            }
            (
                Operation::Cancel { timer, force },
                Answered::Cancelled | Answered::NotFound | Answered::InDelivery,
            ) => {
                figures.cancels += u64::from(*answered == Answered::Cancelled);
                let timer = self.timers.entry(timer.clone()).or_default();
                match answered {
                    Answered::Cancelled => timer.cancelled(at_ms, *force),
                    Answered::NotFound => timer.not_found(at_ms, known.had_no_answer, *force),
                    _ => timer.not_cancelled(),
                }
            }
            (Operation::List { prefix }, Answered::Listed(listed)) => {
                figures.lists += 1;
                self.listed(at_ms, &known, (prefix, listed), broke);
            }
            (operation, answered) => {
                let text = format!("{operation:?} was answered {answered:?}");
                broke(Invariant::I5, text);
            }
        }
    }

    fn listed(
        &mut self,
        at_ms: u64,
        request: &Request,
        (prefix, listed): (&str, &[ListedTimer]),
        broke: &mut impl FnMut(Invariant, String),
    ) {
        let mut by_id: BTreeMap<&str, &ListedTimer> = BTreeMap::new();
        for timer in listed {
            if by_id.insert(&timer.timer, timer).is_some() {
                broke(Invariant::I5, format!("{} was listed twice", timer.timer));
            }
            match self.calls.asked(timer.version) {
                Some(asked) if asked.timer == timer.timer && asked.due_ms == timer.due_ms => {}
                _ => {
                    let text = format!("listed, and never asked for: {timer:?}");
                    broke(Invariant::I5, text);
                }
            }
        }
        let ours = self.timers.range_mut(prefix.to_owned()..);
        for (id, timer) in ours.take_while(|(id, _)| id.starts_with(prefix)) {
            let found = by_id.get(id.as_str()).map(|timer| timer.version);
            let span = (request.invoked_ms, at_ms);
            if let Some((invariant, rule)) = timer.listed(span, found, &self.calls) {
                broke(invariant, format!("{id} {rule}"));
            }
        }
    }
}

//! Holds a history to the promises, in one pass over its events and a second over its timers.

mod calls;
mod timer;

use std::collections::BTreeMap;

use crate::{Answered, Event, ListedTimer, Operation, What};
use calls::Calls;
use timer::{Rules, Timer};

/// What a checked history came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Every promise that was broken, as sentences; empty is right.
    pub broken: Vec<String>,
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

/// Checks a whole history, from its `begin` to its end, by these rules:
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
    let mut checker = Checker::default();
    for event in history {
        checker.take(event);
    }
    checker.end()
}

#[derive(Debug, Default)]
struct Checker {
    rules: Rules,
    requests: BTreeMap<u64, Request>,
    timers: BTreeMap<String, Timer>,
    calls: Calls,
    verdict: Verdict,
    has_begun: bool,
}

#[derive(Clone, Debug)]
struct Request {
    operation: Operation,
    invoked_ms: u64,
    had_no_answer: bool,
}

impl Checker {
    fn take(&mut self, event: &Event) {
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
            What::Killed => self.verdict.figures.kills += 1,
            What::Invoke { request, operation } => self.invoke(event.at_ms, *request, operation),
            What::Answer { request, answered } => self.answer(event.at_ms, *request, answered),
            What::Call { .. } => {
                let broken = self.calls.take(event);
                self.verdict.broken.extend(broken);
                self.verdict.figures.calls += 1;
            }
            What::Quiet {
                timers,
                dead_letters,
                findings,
                file_bytes,
                file_bytes_max,
            } => {
                if *timers > 0 || *dead_letters > 0 {
                    self.broke(format!(
                        "left at the end: {timers} timers, {dead_letters} dead letters"
                    ));
                }
                for finding in findings {
                    self.broke(format!("doctor is not content: {finding}"));
                }
                if file_bytes > file_bytes_max {
                    self.broke(format!(
                        "the files have {file_bytes} bytes, {file_bytes_max} at most were expected"
                    ));
                }
            }
            // What engines see is held to rules of its own.
            _ => {}
        }
    }

    fn invoke(&mut self, at_ms: u64, request: u64, operation: &Operation) {
        let known = self.requests.entry(request).or_insert_with(|| Request {
            operation: operation.clone(),
            invoked_ms: at_ms,
            had_no_answer: false,
        });
        if known.operation != *operation {
            self.broke(format!("request {request} was used for two operations"));
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

    fn answer(&mut self, at_ms: u64, request: u64, answered: &Answered) {
        let Some(known) = self.requests.get_mut(&request) else {
            self.broke(format!("request {request} was answered and never sent"));
            return;
        };
        if *answered == Answered::Unknown {
            known.had_no_answer = true;
            self.verdict.figures.unknown += 1;
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
        let figures = &mut self.verdict.figures;
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
                self.listed(at_ms, &known, prefix, listed);
            }
            (operation, answered) => {
                self.broke(format!("{operation:?} was answered {answered:?}"));
            }
        }
    }

    fn listed(&mut self, at_ms: u64, request: &Request, prefix: &str, listed: &[ListedTimer]) {
        let mut by_id: BTreeMap<&str, &ListedTimer> = BTreeMap::new();
        let mut broken = Vec::new();
        for timer in listed {
            if by_id.insert(&timer.timer, timer).is_some() {
                broken.push(format!("{} was listed twice", timer.timer));
            }
            match self.calls.asked(timer.version) {
                Some(asked) if asked.timer == timer.timer && asked.due_ms == timer.due_ms => {}
                _ => broken.push(format!("listed, and never asked for: {timer:?}")),
            }
        }
        let ours = self.timers.range_mut(prefix.to_owned()..);
        for (id, timer) in ours.take_while(|(id, _)| id.starts_with(prefix)) {
            let found = by_id.get(id.as_str()).map(|timer| timer.version);
            let span = (request.invoked_ms, at_ms);
            if let Some(rule) = timer.listed(span, found, &self.calls) {
                broken.push(format!("{id} {rule}"));
            }
        }
        self.verdict.broken.extend(broken);
    }

    fn end(mut self) -> Verdict {
        if !self.has_begun {
            self.broke("the history has no beginning");
        }
        for (id, timer) in &self.timers {
            for rule in timer.end(&self.calls, self.rules) {
                self.verdict.broken.push(format!("{id} {rule}"));
            }
        }
        self.verdict.figures.timers = self.timers.len() as u64;
        self.verdict.figures.repeated_calls = self.calls.repeated();
        self.verdict
    }

    fn broke(&mut self, rule: impl Into<String>) {
        self.verdict.broken.push(rule.into());
    }
}

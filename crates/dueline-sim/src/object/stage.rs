//! What happens in an object before it is durable. Nothing leaves an object before what it wrote until
//! then is durable, so the history tells it then, in its order; and what is lost with its turn has
//! never happened, but for the questions of clients.

use std::collections::{BTreeMap, VecDeque};

use dueline::store::Wake;
use dueline_history::{Commit, Event, Occurrence, Octets, Told, What};
use dueline_worker::simulated::TurnRecord;

use crate::disk::lane_wakes_of;
use crate::recorder::{Recorder, Taken};

/// What happened, and which timers clients were told of by requests that hold many.
#[derive(Debug, Default)]
struct Held {
    events: Vec<Event>,
    promised: Vec<(Octets, Occurrence)>,
}

/// Events kept back.
#[derive(Debug)]
pub(super) struct Stage {
    /// Takes down what happens in the turn under way.
    pub(super) recorder: Recorder,
    /// Where it is told.
    told: Recorder,
    /// Turns that have ended and are not durable, each with what happened until its end.
    turns: VecDeque<Held>,
    /// What happened behind the last of them.
    behind: Held,
}

impl Stage {
    pub(super) fn new(recorder: Recorder, told: &Recorder) -> Self {
        Self {
            recorder,
            told: told.clone(),
            turns: VecDeque::new(),
            behind: Held::default(),
        }
    }

    /// A turn has ended; whether it wrote anything.
    pub(super) fn end_turn(&mut self, wrote: bool) {
        let Taken {
            events,
            marks,
            hidden,
        } = self.recorder.take();
        for (mark, times) in marks {
            for _ in 0..times {
                self.told.mark(mark);
            }
        }
        for wrong in hidden.wrong {
            self.told.wrong(wrong);
        }
        self.behind.events.extend(events);
        self.behind.promised.extend(hidden.promised);
        if wrote {
            self.turns.push_back(std::mem::take(&mut self.behind));
        } else if self.turns.is_empty() {
            // Nothing stands before it.
            self.tell_behind();
        }
    }

    /// These turns are durable.
    pub(super) fn synced(&mut self, records: &[TurnRecord]) {
        for record in records {
            let held = self.turns.pop_front().unwrap_or_default();
            self.promise(held.promised);
            self.tell_turn(held.events, record);
        }
        if self.turns.is_empty() {
            self.tell_behind();
        }
    }

    /// What is not durable now is lost.
    pub(super) fn lose(&mut self) -> bool {
        let lost = !self.turns.is_empty();
        let behind = std::mem::take(&mut self.behind);
        let held: Vec<Held> = self.turns.drain(..).chain([behind]).collect();
        if !lost {
            for held in &held {
                self.promise(held.promised.clone());
            }
        }
        for mut event in held.into_iter().flat_map(|held| held.events) {
            if lost && is_of_its_turn(&event.what) {
                continue;
            }
            if lost && let What::Told { told, .. } = &mut event.what {
                self.told.mark("an answer goes with its turn");
                *told = Told::Unknown;
            }
            self.told.relay(event);
        }
        lost
    }

    fn tell_behind(&mut self) {
        let Held { events, promised } = std::mem::take(&mut self.behind);
        self.promise(promised);
        for event in events {
            self.told.relay(event);
        }
    }

    fn promise(&self, promised: Vec<(Octets, Occurrence)>) {
        for (partition, occurrence) in promised {
            self.told.promised(partition, occurrence);
        }
    }

    /// The last commit of a partition in its turn tells the wakes of all.
    fn tell_turn(&mut self, mut events: Vec<Event>, record: &TurnRecord) {
        let mut last: BTreeMap<Octets, usize> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            if let What::Commit(commit) = &event.what {
                last.insert(commit.partition.clone(), place);
            }
        }
        for (place, event) in events.iter_mut().enumerate() {
            if let What::Commit(commit) = &mut event.what {
                finish(commit, record.now_ms, &record.wakes);
                commit.has_more = last.get(&commit.partition) != Some(&place);
            }
        }
        for event in events {
            self.told.relay(event);
        }
    }
}

fn finish(commit: &mut Commit, store_ms: u64, wakes: &[Wake]) {
    commit.store_ms = store_ms;
    commit.wakes = lane_wakes_of(wakes, &commit.partition);
}

/// Whether nobody saw it but the object itself.
fn is_of_its_turn(what: &What) -> bool {
    matches!(
        what,
        What::Commit(_) | What::Tick(_) | What::Fire(_) | What::Called(_)
    )
}

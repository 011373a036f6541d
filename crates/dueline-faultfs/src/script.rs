//! The script whose every moment is a crash point, and what it promised at each commit.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use dueline::Bytes;
use dueline::runtime::Clock;
use dueline::store::{Partition, StoreError, WakeStore};
use dueline::timers::{Engine, Policy, Timer, TimerError, TimerKind, Timers};
use dueline_history::{Recorder as History, Verb, VerbName, What, Witness};
use dueline_sqlite::{Durability, Options, SqliteStore};
use dueline_testkit::{ManualClock, test_runtime};

use crate::Failure;
use crate::check::Expected;
use crate::disk::{Disk, Event, Files};
use crate::folder::WatchedFolder;
use crate::history::{Answer, asked, begun, witness};
use crate::recorder::{Commits, Recorder};
use crate::world::{CALLING, Calls, GROUPED, REPEATS, Rows, SINGLE, engine, run, serve};

pub(crate) const DATABASE: &str = "timers.db";
pub(crate) const START_MS: i64 = 1_000_000;
/// The script goes on until it has committed so often.
pub const COMMITS_MIN: usize = 200;
const PARTITIONS: u64 = 4;

/// What is to become of a timer in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It takes effect so often.
    Effects(u64),
    /// It is dead, without effect.
    Dead,
}

/// The fate of a timer, as it is from a commit on.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    /// The first commit at which it holds.
    from_commit: usize,
    partition: Partition,
    reference: Bytes,
    fate: Fate,
}

impl Fate {
    /// Its effects and its dead rows.
    pub(crate) fn outcome(self) -> (u64, usize) {
        match self {
            Self::Effects(effects) => (effects, 0),
            Self::Dead => (0, 1),
        }
    }
}

/// A run of the script: what happened to its files, and what they must hold.
#[derive(Debug)]
pub struct Recording {
    pub(crate) first_disk: Disk,
    pub(crate) events: Vec<Event>,
    /// The rows after each commit.
    pub(crate) rows: Vec<Rows>,
    promises: Vec<Promise>,
    pub(crate) ended_at_ms: i64,
    history: Vec<dueline_history::Event>,
    /// How many events of it came up to each commit.
    lengths: Vec<usize>,
}

impl Recording {
    /// The history of a database that holds so many commits.
    pub(crate) fn history(&self, commits: usize) -> Vec<dueline_history::Event> {
        let length = self.lengths.get(commits).copied().unwrap_or(0);
        self.history.get(..length).unwrap_or_default().to_vec()
    }

    /// How many commits the script got its answer to.
    pub fn commits(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// What must become of every timer of the script if the database holds so many commits.
    pub(crate) fn expected(&self, commits: usize) -> Vec<Expected> {
        let mut fates: BTreeMap<(&Partition, &Bytes), (u64, usize)> = BTreeMap::new();
        for promise in &self.promises {
            // One that was not scheduled yet leaves nothing.
            let fate = fates
                .entry((&promise.partition, &promise.reference))
                .or_default();
            if promise.from_commit <= commits {
                *fate = promise.fate.outcome();
            }
        }
        fates
            .into_iter()
            .map(|((partition, reference), outcome)| Expected {
                partition: partition.clone(),
                reference: reference.clone(),
                allowed: vec![outcome],
            })
            .collect()
    }
}

/// Options of every store here.
pub(crate) fn options(clock: &ManualClock, durability: Durability) -> Options {
    Options::new(Arc::new(clock.clone()) as Arc<dyn Clock>)
        .durability(durability)
        .reader_threads(1)
}

struct Script {
    folder: WatchedFolder,
    durability: Durability,
    clock: ManualClock,
    commits: Arc<Commits>,
    promises: Vec<Promise>,
    open: Open,
    history: Arc<History>,
    requests: u64,
}

/// The store while it is open.
struct Open {
    store: SqliteStore,
    here: Arc<dyn WakeStore>,
    witness: Arc<Witness>,
    engine: Engine,
}

impl Open {
    fn new(
        folder: &WatchedFolder,
        durability: Durability,
        clock: &ManualClock,
        (commits, history): (&Arc<Commits>, &Arc<History>),
    ) -> Result<Self, Failure> {
        let store = SqliteStore::open(folder.file(DATABASE), options(clock, durability))?;
        let here = store
            .for_blocking_threads()
            .ok_or("the store has no handle for blocking threads")?;
        let witness = Arc::new(witness(&here, history, clock));
        let recorder = Arc::new(Recorder {
            inner: Arc::clone(&witness) as Arc<dyn WakeStore>,
            commits: Arc::clone(commits),
        });
        let engine = engine(recorder, test_runtime(clock))?;
        Ok(Self {
            store,
            here,
            witness,
            engine,
        })
    }
}

/// Runs the script and records it.
///
/// # Errors
/// What the store or the engine says: nothing is made to fail here.
pub fn record(durability: Durability) -> Result<Recording, Failure> {
    let folder = WatchedFolder::new(&Files::new())?;
    let clock = ManualClock::new(START_MS);
    let history = Arc::new(begun(&clock));
    let commits = Commits::new(Arc::clone(folder.watched()), Arc::clone(&history));
    let commits = Arc::new(commits);
    let open = Open::new(&folder, durability, &clock, (&commits, &history))?;
    let mut script = Script {
        folder,
        durability,
        clock,
        commits,
        promises: Vec::new(),
        open,
        history,
        requests: 0,
    };
    let mut round = 0;
    while script.commits.count() < COMMITS_MIN {
        script.round(round)?;
        round += 1;
    }
    // The events end before the store closes: the last commits are in flight like all others.
    let watched = Arc::clone(script.folder.watched());
    let events = watched.events();
    let (rows, lengths) = script.commits.take();
    Ok(Recording {
        first_disk: watched.first_disk(),
        events,
        rows,
        history: script.history.take(),
        lengths,
        promises: script.promises,
        ended_at_ms: script.clock.wall_ms(),
    })
}

impl Script {
    fn round(&mut self, round: u64) -> Result<(), Failure> {
        let partition = partition(round)?;
        for (kind, what) in [
            (GROUPED, "plain"),
            (GROUPED, "flaky"),
            (CALLING, "called"),
            (SINGLE, "repeat"),
        ] {
            let fate = Fate::Effects(if what == "repeat" { REPEATS } else { 1 });
            // Some need overflow pages.
            let payload_bytes = if round.is_multiple_of(3) && what == "called" {
                6_000
            } else {
                100
            };
            let timer = Timer::new(kind, format!("{what}-{round}")).payload(vec![7; payload_bytes]);
            let name = format!("{what}-{round}");
            self.schedule(&partition, timer, (kind, &name), 1_000, fate)?;
        }
        match round % 4 {
            0 => self.named(&partition, round)?,
            1 => {
                let reference = format!("doomed-{round}");
                let timer = Timer::new(GROUPED, reference.clone());
                self.schedule(&partition, timer, (GROUPED, &reference), 500, Fate::Dead)?;
            }
            2 => {
                let pause = asked(&partition, SINGLE, "", VerbName::Pause);
                self.run(pause, |timers| timers.pause(&partition, SINGLE))?;
            }
            _ => self.cancelled(&partition, round)?,
        }
        self.clock.advance_ms(2_000);
        let calls = if round % 5 == 4 {
            Calls::Drop
        } else {
            Calls::Settle
        };
        let here = self.open.here.as_ref();
        run(here, serve(here, &self.open.engine, calls))?;
        if round % 4 == 3 {
            let paused = self::partition(round - 1)?;
            let resume = asked(&paused, SINGLE, "", VerbName::Resume);
            self.run(resume, |timers| timers.resume(&paused, SINGLE))?;
        }
        if round % 3 == 2 {
            self.open.store.checkpoint()?;
        }
        if round % 8 == 7 {
            self.open.store.close();
            let told = (&self.commits, &self.history);
            self.open = Open::new(&self.folder, self.durability, &self.clock, told)?;
        }
        Ok(())
    }

    /// Runs a verb, and records what was asked for and told.
    fn run<'a, T: Answer, F: Future<Output = Result<T, TimerError>>>(
        &'a mut self,
        mut asked: Verb,
        verb: impl FnOnce(&'a Timers) -> F,
    ) -> Result<(), TimerError> {
        self.requests += 1;
        asked.request = self.requests;
        let witness = &self.open.witness;
        witness.record(What::Verb(asked));
        witness.set_request(Some(self.requests));
        let answer = run(self.open.here.as_ref(), verb(self.open.engine.timers()));
        witness.set_request(None);
        let told = answer?.told();
        witness.record(What::Told {
            request: self.requests,
            told,
        });
        Ok(())
    }

    fn schedule(
        &mut self,
        partition: &Partition,
        timer: Timer,
        (kind, reference): (TimerKind, &str),
        due_in_ms: u64,
        fate: Fate,
    ) -> Result<(), Failure> {
        let timer = timer.due_at(self.open.engine.runtime().now_ms() + due_in_ms);
        let schedule = asked(partition, kind, reference, VerbName::Schedule);
        self.run(schedule, |timers| {
            timers.schedule(partition, timer, Policy::Replace)
        })?;
        self.promise(partition, reference, fate);
        Ok(())
    }

    /// Notes what holds from the commit on that has just been acknowledged.
    fn promise(&mut self, partition: &Partition, reference: &str, fate: Fate) {
        self.promises.push(Promise {
            from_commit: self.commits.count(),
            partition: partition.clone(),
            reference: Bytes::from(reference.to_owned()),
            fate,
        });
    }

    /// A name that is scheduled, replaced, moved and kicked before it is due.
    fn named(&mut self, partition: &Partition, round: u64) -> Result<(), Failure> {
        let reference = format!("named-{round}");
        let name = Bytes::from(reference.clone());
        let now_ms = self.open.engine.runtime().now_ms();
        let timer = Timer::new(GROUPED, reference.clone()).named();
        let once = Fate::Effects(1);
        let named = (GROUPED, reference.as_str());
        self.schedule(partition, timer.clone(), named, 60_000, once)?;
        self.schedule(partition, timer.clone(), named, 90_000, once)?;
        let moved = asked(partition, GROUPED, &reference, VerbName::Reschedule);
        self.run(moved, |timers| {
            timers.reschedule(partition, GROUPED, &name, now_ms + 70_000, None)
        })?;
        let kick = timer.due_at(now_ms + 1_500).payload("kicked");
        let kicked = asked(partition, GROUPED, &reference, VerbName::Schedule);
        self.run(kicked, |timers| {
            timers.schedule(partition, kick, Policy::KeepEarliest)
        })?;
        Ok(())
    }

    /// A name that is cancelled before it is due.
    fn cancelled(&mut self, partition: &Partition, round: u64) -> Result<(), Failure> {
        let reference = format!("cancelled-{round}");
        let name = Bytes::from(reference.clone());
        let timer = Timer::new(SINGLE, reference.clone()).named();
        let named = (SINGLE, reference.as_str());
        self.schedule(partition, timer, named, 60_000, Fate::Effects(1))?;
        let cancel = asked(partition, SINGLE, &reference, VerbName::Cancel);
        self.run(cancel, |timers| {
            timers.cancel(partition, SINGLE, &name, None)
        })?;
        self.promise(partition, &reference, Fate::Effects(0));
        Ok(())
    }
}

fn partition(round: u64) -> Result<Partition, StoreError> {
    Partition::new(format!("partition-{}", round % PARTITIONS))
}

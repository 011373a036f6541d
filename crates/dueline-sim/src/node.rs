//! One machine with one process on it: the real engine and the real native driver, without threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dueline::BoxFuture;
use dueline::runtime::{Clock, Entropy, Runtime};
use dueline::store::{Partition, WakeStore};
use dueline::timers::{Engine, Registry, RunReport, TickBudget, Timers};
use dueline_history::{Tick, What};
use dueline_testkit::SequenceEntropy;
use dueline_tokio::simulation::{Jobs, SimulationHost, simulated_store};
use dueline_tokio::{Driver, DriverStore, Handle};

use crate::disk::{Disk, NodeStore, octets};
use crate::executor::{Executor, Owner, Spawner};
use crate::handlers;
use crate::kinds::Play;
use crate::plan::{NodeSpec, WorldSpec};
use crate::recorder::{Actor, Recorder};
use crate::tag::Tag;
use crate::time::{NodeClock, TrueTime};

/// A machine. Its clock goes on while no process is there.
#[derive(Debug)]
pub struct Node {
    pub(crate) number: u16,
    pub(crate) clock: NodeClock,
    pub(crate) spec: NodeSpec,
    pub(crate) is_old: bool,
    pub(crate) life: Option<Life>,
    actor: Actor,
    /// Those who ask this process: what draws their generations.
    pub(crate) clients: Actor,
    epoch: u64,
    ended_cleanly: bool,
    /// Whether a handler has killed the process.
    killed: Arc<AtomicBool>,
}

/// One process.
#[derive(Debug)]
pub struct Life {
    pub(crate) handle: Handle,
    pub(crate) jobs: Jobs,
    pub(crate) is_stopping: bool,
}

/// What a process needs from the world.
pub(crate) struct Surroundings<'a> {
    pub(crate) world: &'a WorldSpec,
    pub(crate) disk: &'a Arc<Disk>,
    pub(crate) recorder: &'a Recorder,
    pub(crate) executor: &'a mut Executor,
    pub(crate) epoch: u64,
    pub(crate) entropy_seed: u64,
    /// What is played, if it is not scripted kinds.
    pub(crate) play: Option<&'a mut Play>,
}

/// Entropy whose first two bits are the node's own. Two processes that draw the same 18 bits for a
/// generation in one millisecond give two anonymous timers of one reference one identity; by chance that is one in
/// 262,144, and what must hold then is looked at with narrowed generations.
#[derive(Debug)]
struct OwnBits(SequenceEntropy, u16);

impl Entropy for OwnBits {
    fn next_u64(&self) -> u64 {
        (self.0.next_u64() >> 2) | (u64::from(self.1) << 62)
    }
}

/// Where the driver's detached calls run, and who takes down its ticks.
#[derive(Debug)]
struct Host {
    spawner: Spawner,
    recorder: Recorder,
    actor: Actor,
    node: u16,
    clock: NodeClock,
    budget: TickBudget,
}

impl SimulationHost for Host {
    fn begin(&self, task: BoxFuture<'static, ()>) -> u64 {
        self.spawner.begin(task)
    }

    fn end(&self, number: u64) {
        self.spawner.end(number);
    }

    fn ticked(&self, partition: &Partition, began: Duration, report: &RunReport) {
        let Tag::Turn(turn) = Tag::current() else {
            return;
        };
        let took = self.clock.monotonic().saturating_sub(began);
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let now_ms = u64::try_from(self.clock.wall_ms()).unwrap_or(0);
        let tick = Tick::of(
            (self.node, turn),
            octets(partition.as_bytes()),
            (now_ms.saturating_sub(took_ms), took_ms),
            &self.budget,
            report,
        );
        if report.stopped_on_budget {
            self.recorder.mark("a tick stops on its budget");
        }
        if report.held_back {
            self.recorder.mark("a tick is refused by the store");
        }
        self.recorder.event(&self.actor, What::Tick(tick));
    }
}

impl Node {
    pub(crate) fn new(number: u16, spec: NodeSpec, time: &TrueTime) -> Self {
        Self {
            number,
            clock: NodeClock::new(time, spec.offset_ms, spec.drift_ppm),
            is_old: spec.is_old,
            spec,
            life: None,
            actor: Actor::new(&format!("node-{number}")),
            clients: Actor::new(""),
            epoch: 0,
            ended_cleanly: true,
            killed: Arc::default(),
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner::from(self.number)
    }

    /// Whether a handler has killed the process since this was last asked.
    pub(crate) fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed) && self.killed.swap(false, Ordering::Relaxed)
    }

    /// Begins a process.
    pub(crate) fn start(&mut self, around: Surroundings<'_>) {
        let Surroundings {
            world,
            disk,
            recorder,
            executor,
            epoch,
            entropy_seed,
            play,
        } = around;
        self.epoch = epoch;
        self.clients = Actor::new(&format!("clients-{}.{epoch}", self.number));
        let opened_at_ms = u64::try_from(self.clock.wall_ms()).unwrap_or(0);
        let unclean = (!self.ended_cleanly && !world.is_remote).then_some(opened_at_ms);
        self.ended_cleanly = false;
        recorder.event(
            &self.actor,
            What::Started {
                node: self.number,
                epoch,
            },
        );
        let store = NodeStore::new(
            disk,
            &self.actor,
            (self.number, epoch),
            world.is_remote,
            unclean,
        );
        let runtime = Runtime::new(
            Arc::new(self.clock.clone()),
            Arc::new(self.clock.clone()),
            Arc::new(OwnBits(SequenceEntropy::new(entropy_seed), self.number)),
        );
        let host = Arc::new(Host {
            spawner: executor.spawner(self.owner()),
            recorder: recorder.clone(),
            actor: self.actor.clone(),
            node: self.number,
            clock: self.clock.clone(),
            budget: self.spec.budget,
        });
        let store = simulated_store(store as Arc<dyn WakeStore>, host.clone());
        self.killed.store(false, Ordering::Relaxed);
        let registry = match play {
            Some(play) => play.registry(&Timers::new(store.to_store(), runtime.clone())),
            None => handlers::registry(
                world,
                (&self.spec, self.is_old),
                (recorder, &self.actor, self.number),
                &runtime,
                &self.killed,
            ),
        };
        recorder.event(
            &self.actor,
            What::Registry {
                node: self.number,
                kinds: registry.iter().map(|(kind, _)| kind.0).collect(),
            },
        );
        self.drive(executor, store, runtime, registry, host);
    }

    /// Begins its driver.
    fn drive(
        &mut self,
        executor: &mut Executor,
        store: DriverStore,
        runtime: Runtime,
        registry: Registry,
        host: Arc<Host>,
    ) {
        let engine = Engine::new(store.to_store(), runtime, registry);
        let driver = Driver::builder(engine, store)
            .tick_threads(1)
            .ticks_max(self.spec.ticks_max)
            .window_max(16)
            .budget(self.spec.budget)
            .without_audit()
            .simulate(host)
            .unwrap_or_else(|error| unreachable!("the store keeps wakes: {error}"));
        executor.spawn(self.owner(), Tag::Engine, false, driver.scheduler);
        self.life = Some(Life {
            handle: driver.handle,
            jobs: driver.jobs,
            is_stopping: false,
        });
    }

    /// Ends the process: as it should, or wherever it stands.
    pub(crate) fn end(&mut self, executor: &mut Executor, recorder: &Recorder, crashed: bool) {
        let Some(life) = self.life.take() else {
            return;
        };
        executor.go_on(self.owner());
        executor.drop_tasks(self.owner(), false);
        drop(life);
        // What the end of the tasks has begun dies too.
        executor.drop_tasks(self.owner(), false);
        self.ended_cleanly = !crashed;
        recorder.event(
            &self.actor,
            What::Stopped {
                node: self.number,
                crashed,
            },
        );
    }
}

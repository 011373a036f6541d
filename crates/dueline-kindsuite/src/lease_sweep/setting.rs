//! A world with leases, and a source that says what the case wants.

use std::sync::{Arc, Mutex};

use dueline::BoxFuture;
use dueline::kinds::lease_sweep::{
    Drain, Grant, Lease, LeaseName, LeaseOwner, LeaseSource, LeaseState, LeaseSweep, Leases,
    Renewal,
};
use dueline::store::Partition;
use dueline::timers::{Engine, HandlerError};
use dueline_testkit::block_on;

use crate::{Make, World};

/// The term of the leases of a case, in milliseconds.
pub(super) const TERM_MS: u64 = 30_000;

/// What a source says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Drain(Drain),
    Unreachable,
    Corrupt,
}

pub(super) const WORKING: Answer = Answer::Drain(Drain::Working { watermark: 0 });

/// A source that says what it was told to, and remembers what it was asked.
#[derive(Clone, Debug)]
pub(super) struct Source(Arc<Mutex<Told>>);

#[derive(Debug)]
struct Told {
    answer: Answer,
    asked: u64,
    kept_long: Vec<(u64, u64)>,
}

impl Source {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Told {
            answer: Answer::Drain(Drain::Drained),
            asked: 0,
            kept_long: Vec::new(),
        })))
    }

    pub(super) fn says(&self, answer: Answer) {
        self.0.lock().unwrap().answer = answer;
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> u64 {
        self.0.lock().unwrap().asked
    }

    /// Epoch and time past the expiry of every lease that was said to be kept for long.
    pub(super) fn kept_long(&self) -> Vec<(u64, u64)> {
        self.0.lock().unwrap().kept_long.clone()
    }
}

impl LeaseSource for Source {
    fn drain<'a>(
        &'a self,
        _: &'a Partition,
        _: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>> {
        let mut told = self.0.lock().unwrap();
        told.asked += 1;
        let said = match told.answer {
            Answer::Drain(drain) => Ok(drain),
            Answer::Unreachable => Err(HandlerError::new("the source cannot be reached")),
            Answer::Corrupt => Err(HandlerError::new("the source makes no sense")),
        };
        Box::pin(std::future::ready(said))
    }

    fn kept_long(&self, _: &Partition, lease: &Lease, overdue_ms: u64) {
        let mut told = self.0.lock().unwrap();
        told.kept_long.push((lease.epoch, overdue_ms));
    }
}

/// A world, its leases, and the engine that sweeps them.
pub(super) struct Setting {
    pub(super) world: World,
    pub(super) leases: Leases,
    pub(super) source: Source,
    pub(super) engine: Engine,
    pub(super) name: LeaseName,
}

impl Setting {
    pub(super) fn new(make: Make<'_>) -> Self {
        let world = World::new(make);
        let source = Source::new();
        let engine = world.engine_of([LeaseSweep::new(source.clone()).entry()]);
        Self {
            leases: Leases::new(world.timers.clone()),
            engine,
            source,
            name: LeaseName::new("leader").unwrap(),
            world,
        }
    }

    #[track_caller]
    pub(super) fn ask(&self, owner: &'static str) -> Grant {
        let owner = LeaseOwner::new(owner).unwrap();
        let grant = self
            .leases
            .grant(&self.world.partition, &self.name, &owner, TERM_MS);
        block_on(grant).unwrap()
    }

    /// The lease, which must be free.
    #[track_caller]
    pub(super) fn grant(&self, owner: &'static str) -> Lease {
        match self.ask(owner) {
            Grant::Granted(lease) => lease,
            Grant::Held(other) => panic!("held by {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn renew(&self, epoch: u64) -> Renewal {
        let renewal = self
            .leases
            .renew(&self.world.partition, &self.name, epoch, TERM_MS);
        block_on(renewal).unwrap()
    }

    #[track_caller]
    pub(super) fn state(&self) -> LeaseState {
        block_on(self.leases.read(&self.world.partition, &self.name)).unwrap()
    }

    #[track_caller]
    pub(super) fn held(&self) -> Lease {
        match self.state() {
            LeaseState::Held(lease) => lease,
            vacant @ LeaseState::Vacant { .. } => panic!("{vacant:?}"),
        }
    }
}

pub(super) fn vacant(last_epoch: u64, watermark: u64) -> LeaseState {
    LeaseState::Vacant {
        last_epoch,
        watermark,
    }
}

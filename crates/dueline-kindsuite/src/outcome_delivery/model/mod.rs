//! Random histories of an outbox with a sink and one with a relay.
//!
//! Two processes and a client work on one store, stepped between any two of its calls. Calls fail, commits
//! end in doubt or land late, processes die, clocks are set. After every commit the rows are held to the
//! rules of [`judge`]: the count is right, what waits has its timer, a target absorbs each message once and
//! in order; and at every call of the sink everything before it has been sent before. In the end nothing is
//! lost.

mod judge;
mod node;

use std::sync::Arc;

use bytes::Bytes;
use dueline::kinds::outcome_delivery::{Outbox, OutboxName, Outcome, RelayMessage};
use dueline::runtime::Clock;
use dueline::store::Partition;
use dueline::timers::{ClaimedCall, Tick};
use dueline_testkit::model::{Arena, Mishap, Random, Tasks};
use dueline_testkit::{ManualClock, block_on};

use judge::{FERRY, Judge, MAIL, source};
use node::{Mood, Moody, Node, Shared};

const START_MS: i64 = 1_000_000;
const CLIENT: usize = 2;

enum Ended {
    Tick(Option<Box<Tick>>),
    Other,
}

/// One history; all of it follows from its seed.
#[allow(missing_debug_implementations, reason = "it holds tasks")]
pub struct History {
    seed: u64,
    random: Random,
    arena: Arc<Arena>,
    judge: Shared<Judge>,
    sink: Moody,
    /// Those of the store, the client and the two processes.
    clocks: [ManualClock; 4],
    nodes: [Node; 2],
    tasks: Tasks<Ended>,
    appended: u64,
    crashes: bool,
    clock_steps: bool,
}

impl History {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let clocks = [
            0,
            0,
            random.pick(&[0, 0, 2_000]),
            random.pick(&[0, 0, -2_000]),
        ]
        .map(|skew_ms| ManualClock::new(START_MS + skew_ms));
        let arena = Arena::new(&clocks[0]);
        let all = [
            Mishap::Unavailable,
            Mishap::Full,
            Mishap::UnknownWritten,
            Mishap::UnknownNotWritten,
            Mishap::UnknownLate,
        ];
        let mishaps: Vec<Mishap> = all.into_iter().filter(|_| random.chance(50)).collect();
        if !mishaps.is_empty() {
            let per_mille = random.pick(&[0, 5, 20, 80]);
            arena.fail_calls(random.next_u64(), per_mille, &mishaps);
        }
        if random.chance(40) {
            arena.shorten_pages(random.next_u64(), 30);
        }
        let judge = Shared::new(Judge::new(arena.memory()));
        let watching = judge.clone();
        arena.watch(move |committed| {
            if let Some(batch) = committed.batch {
                watching.lock().committed(committed.partition, batch);
            }
        });
        let sink = Moody {
            judge: judge.clone(),
            mood: Shared::new(Mood {
                random: Random::new(random.next_u64()),
                fails_percent: random.pick(&[0, 10, 40, 90]),
            }),
        };
        let nodes = [2, 3]
            .map(|clock: usize| Node::new(&arena, clocks[clock].clone(), random.next_u64(), &sink));
        Self {
            seed,
            arena,
            judge,
            sink,
            clocks,
            nodes,
            tasks: Tasks::new(),
            appended: 0,
            crashes: random.chance(50),
            clock_steps: random.chance(30),
            random,
        }
    }

    /// Runs the history and what is left behind it to the end; every rule that was broken, and how much was
    /// seen: outcomes, calls, messages absorbed.
    pub fn run(mut self) -> (Vec<String>, (usize, usize, usize)) {
        for _ in 0..150 + self.random.below(500) {
            self.step();
        }
        self.quiesce();
        let mut judge = self.judge.lock();
        judge.conclude();
        let mut broken = std::mem::take(&mut judge.broken);
        for line in &mut broken {
            *line = format!("seed {}: {line}", self.seed);
        }
        (broken, judge.seen())
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..68 => self.poll_one(),
            68..77 => self.begin_tick(),
            77..89 => self.begin_verb(),
            89..94 => {
                let by_ms = self.random.pick(&[1, 50, 300, 700, 3_000, 20_000]);
                self.advance(by_ms);
            }
            94..96 => {
                self.arena.land_late();
            }
            96..98 if self.crashes => {
                let index = self.random.below(2) as usize;
                self.tasks.drop_all_of(index);
                let seed = self.random.next_u64();
                self.nodes[index].restart(&self.arena, seed, &self.sink);
            }
            98..100 if self.clock_steps => {
                let by_ms = self.random.pick(&[-5_000, -300, 300, 20_000]);
                let place = self.random.below(4) as usize;
                self.clocks[place].jump_wall_ms(by_ms);
            }
            _ => self.poll_one(),
        }
    }

    fn advance(&self, by_ms: u64) {
        for clock in &self.clocks {
            clock.advance_ms(by_ms);
        }
    }

    fn poll_one(&mut self) {
        let place = self.random.below(self.tasks.len() as u64) as usize;
        if let Some((owner, Ended::Tick(Some(tick)))) = self.tasks.step(place) {
            for call in tick.calls {
                self.begin_call(owner, call);
            }
        }
    }

    fn begin_call(&mut self, owner: usize, call: ClaimedCall) {
        let engine = self.nodes[owner].engine.clone();
        let gives_back = self.random.chance(10);
        self.tasks.spawn(owner, async move {
            if gives_back {
                let claim = call.claim().clone();
                drop(call);
                let _released = engine.release(&claim).await;
            } else {
                engine.settle(call.run().await).await;
            }
            Ended::Other
        });
    }

    fn begin_tick(&mut self) {
        let index = self.random.below(2) as usize;
        if self.tasks.of(index) > 6 {
            return;
        }
        let tick = self.nodes[index].tick();
        self.tasks
            .spawn(index, async move { Ended::Tick(tick.await.map(Box::new)) });
    }

    /// Appends to one of the outboxes, or looks after the dead.
    fn begin_verb(&mut self) {
        if self.tasks.of(CLIENT) > 2 {
            return;
        }
        let timers = Node::client(&self.arena, &self.clocks[1], self.random.next_u64());
        let outbox = |name: &'static str| {
            Outbox::new(timers.clone(), source(), OutboxName::new(name).unwrap())
        };
        let sequence = self.random.below(self.appended + 1);
        match self.random.below(10) {
            0 => {
                let mail = outbox(MAIL);
                self.client(async move { drop(mail.requeue(sequence).await) });
            }
            1 => {
                let mail = outbox(MAIL);
                self.client(async move { drop(mail.set_aside(sequence, "by hand").await) });
            }
            2..6 => {
                let outcomes: Vec<Outcome> =
                    (0..self.random.below(4)).map(|_| self.outcome()).collect();
                let mail = outbox(MAIL);
                self.client(async move { drop(mail.append(&outcomes).await) });
            }
            _ => {
                let messages: Vec<Outcome> =
                    (0..self.random.below(4)).map(|_| self.message()).collect();
                let ferry = outbox(FERRY);
                self.client(async move { drop(ferry.append(&messages).await) });
            }
        }
    }

    fn client(&mut self, verb: impl Future<Output = ()> + 'static) {
        self.tasks.spawn(CLIENT, async move {
            verb.await;
            Ended::Other
        });
    }

    fn next_id(&mut self) -> Bytes {
        self.appended += 1;
        Bytes::from(format!("id-{}", self.appended))
    }

    fn outcome(&mut self) -> Outcome {
        Outcome {
            id: self.next_id(),
            body: "body".into(),
        }
    }

    /// A message whose target remembers the last one, so that each of them shows.
    fn message(&mut self) -> Outcome {
        let id = self.next_id();
        let target = Partition::new(format!("t{}", self.random.below(4))).unwrap();
        RelayMessage::to(target)
            .put("last", id.clone())
            .put(id.clone(), "absorbed")
            .outcome(id)
            .unwrap()
    }

    /// Nothing goes wrong any more: lets everything end, and works off what is there by its stored wakes.
    fn quiesce(&mut self) {
        self.arena.heal();
        self.sink.mood.lock().fails_percent = 0;
        if self.random.chance(50) {
            while self.arena.land_late() {}
        }
        if self.random.chance(50) {
            self.tasks.drop_all_of(0);
            self.tasks.drop_all_of(1);
        }
        for _ in 0..40_000 {
            if self.tasks.is_empty() {
                break;
            }
            self.poll_one();
            if self.random.chance(1) {
                self.advance(500);
            }
        }
        self.arena.drop_late();
        let latest = self.clocks.iter().map(Clock::wall_ms).max().unwrap();
        for clock in &self.clocks {
            clock.set_wall_ms(latest);
        }
        for _ in 0..2_000 {
            if !self.work_off_once() {
                return;
            }
        }
        let left = format!(
            "wakes are left at the end: {:?}",
            self.arena.memory().wakes()
        );
        self.judge.lock().broken.push(left);
    }

    fn work_off_once(&mut self) -> bool {
        let wakes = self.arena.memory().wakes();
        let Some(first) = wakes.first() else {
            return false;
        };
        let now_ms = self.clocks[0].wall_ms() as u64;
        self.advance(first.at_ms.saturating_sub(now_ms));
        if let Some(tick) = block_on(self.nodes[0].tick()) {
            for call in tick.calls {
                let finished = block_on(call.run());
                block_on(self.nodes[0].engine.settle(finished));
            }
        }
        true
    }
}

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use dueline::kinds::fuzzing::{Form, forms};
use dueline::kinds::lease_sweep::{LeaseName, LeaseOwner, LeaseSweep, Leases};
use dueline::kinds::outcome_delivery::{
    OUTCOME_DELIVERY, Outbox, OutboxName, Outcome, OutcomeDelivery, Relay, RelayMessage,
};
use dueline::kinds::publication_recheck::{PublicationRecheck, Rechecks};
use dueline::kinds::quota_rollup::{Quota, QuotaRollup, Quotas};
use dueline::kinds::reservation_reconcile::{ReservationId, Reservations, Reserved, Terms};
use dueline::kinds::test_kind::{Fault, Script, TEST_KIND, TestKind};
use dueline::kinds::ticket_expiry::{Hold, TICKET_EXPIRY, TicketId, Tickets};
use dueline::memory::MemoryStore;
use dueline::rows::{DeadRow, TimerRow, class, is_of_class};
use dueline::store::{Batch, BatchOutcome, Key, NamespaceStore, Partition, ReadStore, Value};
use dueline::timers::{
    Counts, Engine, Registry, TickBudget, TimerError, TimerKind, Timers, run_due,
};
use dueline_testkit::{ManualClock, block_on, test_runtime};

use super::Meddling;
use super::parts::{Aborted, Press, Receiver, SomeWork, dependencies};

/// The record that is damaged, in every kind.
pub(super) const DAMAGED: &str = "a";
/// The other one.
pub(super) const SOUND: &str = "sound";
pub(super) const TERM_MS: u64 = 60_000;
/// How long a run of the test kind may hang, in milliseconds.
const HANG_MS: u64 = 10;
const START_MS: i64 = 1_700_000_000_000;
/// What passes in the end, in milliseconds: every term ends, everything that is kept is let go.
const REST_MS: [u64; 8] = [
    TERM_MS, 10_000, TERM_MS, TERM_MS, TERM_MS, 300_000, 300_000, 300_000,
];
/// Most ticks that it may take to work off what is due.
const TICKS_MAX: usize = 200;

/// What there is of one name.
pub(super) struct Record {
    pub(super) name: &'static str,
    pub(super) lease: LeaseName,
    pub(super) ticket: TicketId,
    pub(super) quotas: Quotas,
    pub(super) outbox: Outbox,
    pub(super) relay: Outbox,
    pub(super) reservation: ReservationId,
    pub(super) serial: u64,
}

pub(super) struct World {
    pub(super) clock: ManualClock,
    pub(super) store: Arc<MemoryStore>,
    pub(super) timers: Timers,
    pub(super) home: Partition,
    pub(super) coordinator: Partition,
    pub(super) far: Partition,
    pub(super) leases: Leases,
    pub(super) tickets: Tickets,
    pub(super) reservations: Reservations,
    pub(super) rechecks: Rechecks,
    pub(super) receiver: Receiver,
    pub(super) damaged: Record,
    pub(super) sound: Record,
    pub(super) meddling: Meddling,
    pub(super) reached: BTreeSet<String>,
    engine: Engine,
}

pub(super) fn partition(name: &'static str) -> Partition {
    Partition::new(name).expect("a name")
}

fn outbox_name(name: &str) -> OutboxName {
    OutboxName::new(name.to_owned()).expect("a name")
}

pub(super) fn relay_name(name: &str) -> String {
    format!("{name}-relay")
}

pub(super) fn owner() -> LeaseOwner {
    LeaseOwner::new("owner").expect("an owner")
}

pub(super) fn hold(name: &'static str) -> Hold {
    let hold = Hold::new(name, TERM_MS).actor(name).idempotency_key(name);
    hold.session(name).data(name).resource_max(3).actor_max(3)
}

pub(super) fn terms(name: &str) -> Terms {
    let terms = Terms::commit_within_ms(TERM_MS).kept_for_ms(TERM_MS);
    terms.outbox(outbox_name(name)).detail(name.to_owned())
}

pub(super) fn outcome(id: String) -> Outcome {
    Outcome {
        id: id.into(),
        body: Bytes::from_static(b"body"),
    }
}

/// A write to the far partition.
pub(super) fn message(name: &str) -> Outcome {
    let message = RelayMessage::to(partition("t")).put(format!("relayed/{name}"), name.to_owned());
    message.outcome("id").expect("a small message")
}

/// The form of a row of a built-in kind, by its key.
pub(super) fn form_of(key: &Key) -> Option<&'static Form> {
    let (kind, letter) = (TimerKind(*key.get(2)?), *key.get(3)?);
    let is_of = |form: &&Form| form.kind == kind && form.letter == Some(letter);
    forms()
        .find(is_of)
        .filter(|_| is_of_class(key, class::BUILT_IN))
}

pub(super) fn decodes(key: &Key, value: &Value) -> bool {
    form_of(key).is_some_and(|form| (form.reread)(value).is_ok())
}

impl World {
    pub(super) fn new(has_sessions: bool, meddling: Meddling) -> Self {
        let clock = ManualClock::new(START_MS);
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let shared: Arc<dyn NamespaceStore> = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        let runtime = test_runtime(&clock);
        let timers = Timers::new(Arc::clone(&shared), runtime.clone());
        let leases = Leases::new(timers.clone());
        // What the tickets of both tell goes where nothing is damaged.
        let mut tickets = Tickets::new(timers.clone()).with_outbox(outbox_name(SOUND));
        if has_sessions {
            tickets = tickets.with_sessions(Aborted);
        }
        // What hangs is cut soon: the others share its time.
        let tests = if has_sessions {
            TestKind::new().detached().deadline_ms(HANG_MS)
        } else {
            TestKind::new().inline().deadline_ms(HANG_MS)
        };
        let reservations = Reservations::new(timers.clone());
        let receiver = Receiver::default();
        let mut delivery = OutcomeDelivery::new(runtime.clone());
        for name in [DAMAGED, SOUND] {
            let relay = Relay::new(Arc::clone(&shared));
            delivery = delivery
                .sink(outbox_name(name), receiver.clone())
                .relay(outbox_name(&relay_name(name)), relay);
        }
        let entries = [
            LeaseSweep::new(SomeWork).entry(),
            (TICKET_EXPIRY, tickets.registration()),
            QuotaRollup::new(timers.clone()).entry(),
            (OUTCOME_DELIVERY, delivery.registration()),
            reservations.entry(),
            PublicationRecheck::new(Press, timers.clone()).entry(),
            (TEST_KIND, tests),
        ];
        let mut registry = Registry::new();
        for (kind, registration) in entries {
            registry.register(kind, registration).expect("seven kinds");
        }
        let make = |name| Record::make(name, &timers, (&leases, &tickets, &reservations));
        Self {
            engine: Engine::new(shared, runtime, registry),
            damaged: make(DAMAGED),
            sound: make(SOUND),
            home: partition("p"),
            coordinator: partition("c"),
            far: partition("t"),
            rechecks: Rechecks::new(timers.clone()),
            clock,
            store,
            timers,
            leases,
            tickets,
            reservations,
            receiver,
            meddling,
            reached: BTreeSet::new(),
        }
    }

    pub(super) fn partitions(&self) -> [Partition; 3] {
        [&self.home, &self.coordinator, &self.far].map(Clone::clone)
    }

    /// Every row, by partition and key.
    pub(super) fn rows(&self) -> BTreeMap<(Partition, Key), Value> {
        let partitions = self.partitions().into_iter();
        partitions
            .flat_map(|of| {
                let rows = self.store.rows(&of).into_iter();
                rows.map(move |(key, value)| ((of.clone(), key), value))
            })
            .collect()
    }

    pub(super) fn write(&self, partition: &Partition, batch: Batch) {
        let outcome = block_on(self.store.apply(partition, batch)).expect("the store works");
        assert_eq!(outcome, BatchOutcome::Committed);
    }

    pub(super) fn get(&self, partition: &Partition, key: &Key) -> Option<Value> {
        block_on(self.store.get(partition, key)).expect("the store works")
    }

    /// Makes visible what the record of this name depends on.
    pub(super) fn make_visible(&self, name: &'static str) {
        for of in dependencies(name.as_bytes()) {
            self.write(&of.partition, Batch::new().put(of.key, "here"));
        }
    }

    /// Time passes, and everything that is due then is worked off.
    pub(super) fn pass(&mut self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
        let before = self.rows();
        for partition in self.partitions() {
            let quiet = (0..TICKS_MAX).any(|_| self.tick(&partition) == 0);
            assert!(quiet, "{partition}: always something is due");
        }
        self.judge_kept(&before, |_| true);
        self.judge_no_panic();
    }

    /// What a tick and its calls have worked off, but for timers of the test kind: a script may go on for tens
    /// of thousands of runs.
    fn tick(&self, partition: &Partition) -> u64 {
        let mut run = pin!(async {
            let mut tick = run_due(&self.engine, partition, TickBudget::default()).await;
            let of_tests = tick.report.per_kind.get(&TEST_KIND);
            let of_tests = of_tests.map_or(0, Counts::progressed);
            let mut progressed = tick.report.total.progressed() - of_tests;
            for call in std::mem::take(&mut tick.calls) {
                let is_test = call.kind() == TEST_KIND;
                let settled = self.engine.settle(call.run().await).await;
                progressed += if is_test { 0 } else { settled.progressed() };
            }
            progressed
        });
        let progressed = loop {
            match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(progressed) => break progressed,
                // A run hangs, and is cut at its deadline.
                Poll::Pending => self
                    .clock
                    .advance(self.clock.next_sleep_end().unwrap_or_default()),
            }
        };
        (self.meddling.behind_tick)(&self.store, partition);
        progressed
    }

    /// Everything that the other record waits for comes about.
    pub(super) fn come_to_rest(&mut self) {
        self.make_visible(SOUND);
        for by_ms in REST_MS {
            self.pass(by_ms);
        }
    }

    /// A panic of a handler is contained by the engine, and remembered in the timer's row.
    fn judge_no_panic(&self) {
        for ((_, key), value) in self.rows() {
            let timer = TimerRow::decode(&value).map(|row| row.header);
            let header = match timer {
                Ok(header) if is_of_class(&key, class::TIMER) => Some(header),
                _ if is_of_class(&key, class::DEAD) => {
                    DeadRow::decode(&value).map(|row| row.header).ok()
                }
                _ => None,
            };
            if let Some(failure) = header.and_then(|header| header.failure) {
                let error = &failure.error;
                let has_panicked = error.contains("panicked");
                let was_asked_for = error.contains("a panic was asked for");
                assert!(!has_panicked || was_asked_for, "{key:?}: {error}");
            }
        }
    }
}

impl Record {
    fn make(
        name: &'static str,
        timers: &Timers,
        (leases, tickets, reservations): (&Leases, &Tickets, &Reservations),
    ) -> Self {
        let home = partition("p");
        let lease = LeaseName::new(name).expect("a name");
        let reservation = ReservationId::new(name).expect("an id");
        let quota = Quota::new(name, partition("c"), TERM_MS).expect("a quota");
        let quotas = Quotas::new(timers.clone(), quota.period_ms(10_000));
        let outbox_of = |name: &str| Outbox::new(timers.clone(), home.clone(), outbox_name(name));
        let (outbox, relay) = (outbox_of(name), outbox_of(&relay_name(name)));
        let made = block_on(async {
            leases.grant(&home, &lease, &owner(), TERM_MS).await?;
            let opened = tickets.open(&home, &hold(name)).await?;
            quotas.charge(&home, [1, 2]).await?;
            quotas.charge(&partition("c"), [3]).await?;
            outbox
                .append(&[outcome(format!("{name}-1")), outcome(format!("{name}-2"))])
                .await?;
            relay.append(&[message(name)]).await?;
            let terms = terms(name);
            let reserved = reservations.reserve(&home, &reservation, &terms).await?;
            let Reserved::Made(reserved) = reserved else {
                panic!("there is one already");
            };
            let looks = Rechecks::new(timers.clone()).plan_new(&Key::from(name))?;
            let test = Script::new().then(Fault::Error, 1).timer(name);
            let test = timers.plan_new(&test.due_at(timers.runtime().now_ms()))?;
            let record = Batch::new().put(name, "record").append(looks.batch);
            let record = record.append(test.batch);
            let outcome = timers.store().apply(&home, record).await?;
            assert_eq!(outcome, BatchOutcome::Committed);
            Ok::<_, TimerError>((opened, reserved.serial))
        });
        let (opened, serial) = made.expect("a sound store");
        Self {
            name,
            lease,
            ticket: opened.ticket().expect("it is open").id(),
            quotas,
            outbox,
            relay,
            reservation,
            serial,
        }
    }

    /// Whether bytes speak of this record.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        let has = |what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
        has(self.name.as_bytes()) || has(self.ticket.as_bytes())
    }
}

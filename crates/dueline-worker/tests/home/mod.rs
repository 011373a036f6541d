//! One simulated object under a clock that the test moves, whose turns are durable as soon as they end.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails the test"
)]

pub mod handlers;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use dueline::rows::{TimerKey, class, class_end, class_start};
use dueline::runtime::Runtime;
use dueline::store::{Partition, ReadStore, ScanRange};
use dueline::timers::{Policy, Registration, Registry, Timer, TimerKind};
use dueline_testkit::{ManualClock, test_runtime};
use dueline_worker::simulated::{
    AlarmEnd, Delivery, SimulatedObject, SimulatedStorage, StorageCall, StorageFaults, TurnRecord,
};
use dueline_worker::{
    AlarmError, AlarmInfo, AlarmReport, ObjectDriver, ObjectOptions, ObjectStorage, Restored, Start,
};

pub const A: TimerKind = TimerKind(16);
pub const B: TimerKind = TimerKind(17);
pub const START_MS: u64 = 1_000_000;

pub struct Home {
    pub clock: ManualClock,
    pub object: RefCell<SimulatedObject>,
    pub turns: RefCell<Vec<TurnRecord>>,
    pub partition: Partition,
    runtime: Runtime,
    is_in_a_transaction: Cell<bool>,
}

impl Home {
    pub fn new() -> Self {
        let clock = ManualClock::new(START_MS as i64);
        let object = SimulatedObject::new(Arc::new(clock.clone())).unwrap();
        object.storage().record_wakes(true);
        Self {
            runtime: test_runtime(&clock),
            clock,
            object: RefCell::new(object),
            turns: RefCell::default(),
            partition: Partition::new("p").unwrap(),
            is_in_a_transaction: Cell::new(false),
        }
    }

    pub fn storage(&self) -> SimulatedStorage {
        self.object.borrow().storage().clone()
    }

    pub fn runtime(&self) -> Runtime {
        self.runtime.clone()
    }

    pub fn now_ms(&self) -> u64 {
        self.runtime.now_ms()
    }

    /// An instance as it is before its constructor has looked at the alarm.
    pub fn open(
        &self,
        kinds: impl IntoIterator<Item = (TimerKind, Registration)>,
        start: Start,
        options: ObjectOptions,
    ) -> ObjectDriver {
        let mut registry = Registry::new();
        for (kind, registration) in kinds {
            registry.register(kind, registration).unwrap();
        }
        let storage = Arc::new(self.storage());
        let opened = ObjectDriver::open(storage, self.runtime(), registry, start, options).unwrap();
        self.end_turn();
        opened
    }

    /// An instance as its constructor leaves it.
    pub fn driver(
        &self,
        kinds: impl IntoIterator<Item = (TimerKind, Registration)>,
    ) -> ObjectDriver {
        let driver = self.open(kinds, Start::Fresh, ObjectOptions::default());
        self.run(driver.restore()).unwrap();
        driver
    }

    pub fn end_turn(&self) {
        let mut object = self.object.borrow_mut();
        object.end_turn().unwrap();
        if self.is_in_a_transaction.get() {
            return;
        }
        self.turns.borrow_mut().extend(object.sync().unwrap());
    }

    /// Whether turns are within a transaction of the application: they become durable together behind its end,
    /// or are [taken back](SimulatedObject::take_back).
    pub fn be_in_a_transaction(&self, is_in_a_transaction: bool) {
        self.is_in_a_transaction.set(is_in_a_transaction);
    }

    /// One turn of a future.
    pub fn turn<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        let polled = future.poll(&mut Context::from_waker(Waker::noop()));
        self.end_turn();
        polled
    }

    /// Runs a future to its end; where nothing gets on, the clock moves to the end of the next sleep.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        for round in 0..100_000 {
            if let Poll::Ready(output) = self.turn(future.as_mut()) {
                return output;
            }
            if round % 4 == 3
                && let Some(sleep) = self.clock.next_sleep_end()
            {
                self.clock.advance(sleep);
            }
        }
        panic!("the future does not end");
    }

    pub fn schedule(
        &self,
        driver: &ObjectDriver,
        kind: TimerKind,
        reference: &'static str,
        due_ms: u64,
    ) {
        let timer = Timer::new(kind, reference).due_at(due_ms).named();
        let timers = driver.timers();
        self.run(timers.schedule(&self.partition, timer, Policy::Replace))
            .unwrap();
    }

    pub fn alarm_ms(&self) -> Option<u64> {
        self.object.borrow().next_alarm_ms()
    }

    /// Waits for the next alarm and serves it to its end.
    pub fn next_alarm(&self, driver: &ObjectDriver) -> Result<AlarmReport, AlarmError> {
        let info = self.begin_alarm();
        let result = self.run(driver.on_alarm(info));
        let end = if result.is_ok() {
            AlarmEnd::Well
        } else {
            AlarmEnd::Failed
        };
        self.end_alarm(end);
        result
    }

    /// Waits for the next alarm: what the platform says with it.
    pub fn begin_alarm(&self) -> AlarmInfo {
        let at_ms = self.alarm_ms().expect("an alarm is set");
        self.clock.advance_ms(at_ms.saturating_sub(self.now_ms()));
        let now_ms = self.now_ms();
        match self.object.borrow_mut().deliver(now_ms) {
            Delivery::Run(info) => info,
            other => panic!("the alarm does not run: {other:?}"),
        }
    }

    pub fn end_alarm(&self, end: AlarmEnd) {
        let now_ms = self.now_ms();
        let records = self.object.borrow_mut().alarm_ended(end, now_ms).unwrap();
        self.turns.borrow_mut().extend(records);
    }

    /// As a request does it that asks first whether it must: where the answer is yes, it is.
    pub fn restore(&self, driver: &ObjectDriver) -> Restored {
        let found_ms = self.run(self.storage().get_alarm()).unwrap();
        let is_sound = driver.is_alarm_sound(found_ms);
        let restored = self.run(driver.restore()).unwrap();
        assert!(!is_sound || restored == Restored::Sound, "{restored:?}");
        restored
    }

    /// Lets every call of this sort fail until further notice.
    pub fn fail(&self, call: StorageCall) {
        self.storage()
            .set_faults(StorageFaults::decided_by(move |asked| {
                (asked == call).then_some(dueline::store::StoreErrorKind::Unavailable)
            }));
    }

    pub fn heal(&self) {
        self.storage().set_faults(StorageFaults::none());
    }

    /// The references of the timers that are stored, in due order.
    pub fn pending(&self, driver: &ObjectDriver) -> Vec<String> {
        let range = ScanRange::new(class_start(class::TIMER), class_end(class::TIMER), 1_000);
        let page = self
            .run(driver.store().scan(&self.partition, &range))
            .unwrap();
        page.rows
            .iter()
            .map(|(key, _)| TimerKey::decode(key).unwrap().reference)
            .map(|reference| String::from_utf8_lossy(&reference).into_owned())
            .collect()
    }
}

//! A world with reservations.

use bytes::Bytes;
use dueline::kinds::outcome_delivery::OutboxName;
use dueline::kinds::reservation_reconcile::{
    End, Reservation, ReservationId, Reservations, Reserved, Settlement, Terms,
};
use dueline::store::{Key, Value};
use dueline::timers::Engine;
use dueline_testkit::block_on;

use crate::{Make, World};

/// How long a commit may take, in milliseconds.
pub(super) const COMMIT_WITHIN_MS: u64 = 40_000;
/// The default skew, in milliseconds.
pub(super) const SKEW_MS: u64 = 1_000;

pub(super) struct Setting {
    pub(super) world: World,
    pub(super) reservations: Reservations,
    pub(super) engine: Engine,
    pub(super) id: ReservationId,
}

pub(super) fn terms() -> Terms {
    Terms::commit_within_ms(COMMIT_WITHIN_MS)
}

pub(super) fn mail() -> OutboxName {
    OutboxName::new("mail").unwrap()
}

impl Setting {
    pub(super) fn new(make: Make<'_>) -> Self {
        let world = World::new(make);
        let reservations = Reservations::new(world.timers.clone());
        Self {
            engine: world.engine_of([reservations.entry()]),
            reservations,
            id: ReservationId::new("seat-12A").unwrap(),
            world,
        }
    }

    #[track_caller]
    pub(super) fn ask(&self, terms: &Terms) -> Reserved {
        block_on(
            self.reservations
                .reserve(&self.world.partition, &self.id, terms),
        )
        .unwrap()
    }

    #[track_caller]
    pub(super) fn reserve(&self, terms: &Terms) -> Reservation {
        match self.ask(terms) {
            Reserved::Made(made) => made,
            Reserved::Exists(other) => panic!("there is {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn read(&self) -> Option<Reservation> {
        block_on(self.reservations.read(&self.world.partition, &self.id)).unwrap()
    }

    /// How it ended.
    #[track_caller]
    pub(super) fn end(&self) -> Option<End> {
        self.read().unwrap().end().cloned()
    }

    #[track_caller]
    pub(super) fn commit(&self, serial: u64) -> Settlement {
        block_on(
            self.reservations
                .commit(&self.world.partition, &self.id, serial),
        )
        .unwrap()
    }

    #[track_caller]
    pub(super) fn abort(&self, serial: u64, reason: &str) -> Settlement {
        block_on(
            self.reservations
                .abort(&self.world.partition, &self.id, serial, reason),
        )
        .unwrap()
    }

    /// The outcomes that wait in the outbox: their ids and bodies.
    pub(super) fn outcomes(&self) -> Vec<(Bytes, Bytes)> {
        let rows = self.world.kind_rows();
        let outcomes = rows.iter().filter(|(key, _)| key[2..4] == [8, b'o']);
        outcomes.map(|(_, value)| outcome_of(value)).collect()
    }

    /// The key of the reservation's row.
    pub(super) fn key(&self) -> Key {
        Bytes::from([b"b\0\x09r", self.id.as_bytes().as_ref()].concat())
    }
}

/// Id and body of an outcome that waits, as FORMAT.md has it.
pub(super) fn outcome_of(value: &Value) -> (Bytes, Bytes) {
    let (id_len, id) = (19, 21);
    let body = id + usize::from(u16::from_be_bytes([value[id_len], value[id_len + 1]]));
    (value.slice(id..body), value.slice(body..))
}

//! What must hold.

use std::collections::BTreeMap;

use bytes::Bytes;
use dueline::kinds::lease_sweep::LeaseState;
use dueline::kinds::test_kind::successes;
use dueline::rows::{class, is_of_class};
use dueline::store::{Key, Partition, Value};
use dueline_testkit::block_on;

use super::parts::key_beside;
use super::world::{SOUND, World, decodes, form_of, relay_name};

/// Tables whose rows stay as they are while they do not decode: kind and letter. Those of outcomes are set
/// aside, those of a window go with it, and a row about a ticket that is set aside goes with the ticket.
const KEPT: [(u8, u8); 11] = [
    (1, b'e'),
    (1, b'l'),
    (2, b'a'),
    (2, b'i'),
    (2, b'r'),
    (2, b't'),
    (8, b'g'),
    (8, b'h'),
    (8, b's'),
    (9, b'r'),
    (255, b'd'),
];

type Rows = BTreeMap<(Partition, Key), Value>;

impl World {
    /// What did not decode before is as it was, in every table of these kinds that promises so.
    pub(super) fn judge_kept(&self, before: &Rows, is_of: impl Fn(u8) -> bool) {
        for ((partition, key), value) in before {
            let Some(form) = form_of(key) else {
                continue;
            };
            let place = (form.kind.0, form.letter.unwrap_or(0));
            if is_of(form.kind.0) && KEPT.contains(&place) && !decodes(key, value) {
                let now = self.get(partition, key);
                let what = form.what;
                assert_eq!(now.as_ref(), Some(value), "{what}, {partition}: {key:?}");
            }
        }
    }

    /// The record that nobody has touched has ended in every kind, once.
    pub(super) fn judge_the_other(&self) {
        let sound = &self.sound;
        let lease = block_on(self.leases.read(&self.home, &sound.lease));
        let vacant = LeaseState::Vacant {
            last_epoch: 1,
            watermark: 7,
        };
        assert_eq!(lease.expect("its rows are sound"), vacant);
        let ticket = block_on(self.tickets.read(&self.home, sound.ticket));
        assert_eq!(ticket.expect("its row is sound"), None);
        let reservation = block_on(self.reservations.read(&self.home, &sound.reservation));
        assert_eq!(reservation.expect("its row is sound"), None);
        for outbox in [&sound.outbox, &sound.relay] {
            let backlog = block_on(outbox.backlog()).expect("its rows are sound");
            assert_eq!(backlog.rows, 0, "{}", outbox.name());
        }
        let succeeded = block_on(successes(&*self.store, &self.home, SOUND));
        assert_eq!(succeeded.expect("its row is sound"), 1, "behind its fault");
        self.judge_what_was_told();
        let relayed = Key::from(format!("relayed/{SOUND}"));
        assert!(
            self.get(&self.far, &relayed).is_some(),
            "it was not relayed"
        );
        let released = key_beside("out", SOUND.as_bytes());
        assert!(self.get(&self.home, &released).is_some(), "not released");
        self.judge_what_is_left();
    }

    /// Both outcomes of the other outbox came in their order, and one of its ticket and its reservation each.
    fn judge_what_was_told(&self) {
        let taken = self.receiver.0.lock().expect("no panic");
        let of_other = taken.iter().filter(|(outbox, ..)| outbox == SOUND);
        let ids: Vec<&Bytes> = of_other.clone().map(|(_, id, _)| id).collect();
        let place = |id: String| {
            let places: Vec<usize> = (0..ids.len()).filter(|at| *ids[*at] == id).collect();
            assert_eq!(places.len(), 1, "{id} was told {} times", places.len());
            places[0]
        };
        let (first, second) = (place(format!("{SOUND}-1")), place(format!("{SOUND}-2")));
        assert!(first < second, "{ids:?}");
        place(self.sound.ticket.to_string());
        place(format!("{SOUND}.{:016x}", self.sound.serial));
        let ends = of_other.filter(|(_, id, _)| *id == self.sound.ticket.to_string());
        for (.., body) in ends {
            let is_expired = body.windows(9).any(|part| part == b"\"expired\"");
            assert!(is_expired, "{body:?}");
        }
    }

    /// No timer waits for the other record or has died, and its rows are those that stay.
    fn judge_what_is_left(&self) {
        let stays = |key: &Key| {
            let relay = relay_name(SOUND);
            let stays = [
                (1, b'e', SOUND),
                (8, b's', SOUND),
                (8, b'g', SOUND),
                (8, b's', &relay),
                (8, b'g', &relay),
                (255, b'd', SOUND),
            ];
            let of = |(kind, letter, name): &(u8, u8, &str)| {
                *key == [&[class::BUILT_IN, 0, *kind, *letter], name.as_bytes()].concat()
            };
            let is_watermark = key.starts_with(&[class::BUILT_IN, 0, 8, b'h']);
            is_watermark || stays.iter().any(of)
        };
        let engine = [class::TIMER, class::DEAD, class::NAME, class::BUILT_IN];
        for ((partition, key), value) in self.rows() {
            let is_of_engine = engine.iter().any(|of| is_of_class(&key, *of));
            if is_of_engine && self.sound.is_in(&key) {
                assert!(stays(&key), "{partition}: {key:?} is left: {value:?}");
            }
        }
    }
}

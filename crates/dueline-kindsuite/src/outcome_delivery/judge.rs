//! What must be true of the rows of an outbox, looked at after every commit, and of the calls of a sink.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dueline::kinds::outcome_delivery::Delivery;
use dueline::rows::{TimerKey, TimerRow};
use dueline::store::{Batch, Key, Partition, Value, Write};

use crate::storm::{Change, Rows, Tally};

/// The names of the outboxes: one with a sink, one with a relay.
pub(super) const MAIL: &str = "mail";
pub(super) const FERRY: &str = "ferry";

/// The partition of the outboxes.
pub(super) fn source() -> Partition {
    Partition::new("p").unwrap()
}

pub(super) struct Judge {
    pub(super) tally: Tally,
    /// Sequences of the mail that were appended, and their ids.
    mail: BTreeMap<u64, Bytes>,
    /// Sequences that left without a call: set aside by hand.
    excused: BTreeSet<u64>,
    called: BTreeMap<u64, u16>,
    /// The attempts that the rows of sequences remember: more than calls if runs were cut before them.
    tried: BTreeMap<u64, u16>,
    delivered: BTreeSet<Bytes>,
    /// The messages for each target in the order of their sequences: the ids.
    sent: BTreeMap<Partition, Vec<Bytes>>,
    /// How many of them each target has absorbed.
    absorbed: BTreeMap<Partition, usize>,
    pub(super) broken: Vec<String>,
}

fn table(letter: u8, name: &str) -> Vec<u8> {
    let len = u8::try_from(name.len()).unwrap();
    [&[b'b', 0, 8, letter, len], name.as_bytes()].concat()
}

/// The sequences of a table with a row for each.
fn sequences(rows: &Rows, letter: u8, name: &str) -> BTreeSet<u64> {
    let prefix = table(letter, name);
    let keys = rows.keys().filter(|key| key.starts_with(&prefix));
    keys.map(|key| number(key, key.len() - 8)).collect()
}

fn number(row: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(row[at..at + 8].try_into().unwrap())
}

/// The id of a row that waits.
fn id_of(row: &Value) -> Bytes {
    let len = usize::from(u16::from_be_bytes(row[19..21].try_into().unwrap()));
    row.slice(21..21 + len)
}

/// What a state row says of who owns the outbox, and how much was put in.
struct Seen {
    is_owned: bool,
    stamp: u64,
    rows_in: u64,
}

impl Judge {
    pub(super) fn new(tally: &Tally) -> Self {
        Self {
            tally: tally.clone(),
            mail: BTreeMap::new(),
            excused: BTreeSet::new(),
            called: BTreeMap::new(),
            tried: BTreeMap::new(),
            delivered: BTreeSet::new(),
            sent: BTreeMap::new(),
            absorbed: BTreeMap::new(),
            broken: Vec::new(),
        }
    }

    /// A batch has committed.
    pub(super) fn committed(&mut self, change: &Change<'_>) {
        if *change.partition != source() {
            return self.absorbed(change.partition, change.batch);
        }
        for write in &change.batch.writes {
            let Write::Put(key, value) = write else {
                continue;
            };
            self.appended(key, value);
            if key.starts_with(&table(b'd', MAIL)) {
                self.tally.count("set aside");
                self.excused.insert(number(key, key.len() - 8));
            }
        }
        self.check(change, MAIL);
        self.check(change, FERRY);
    }

    /// Notes an outcome that is new.
    fn appended(&mut self, key: &Key, value: &Value) {
        if key.starts_with(&table(b'o', MAIL)) {
            let sequence = number(key, key.len() - 8);
            if self.mail.insert(sequence, id_of(value)).is_none() {
                self.tally.count("appended");
            }
            let attempt = u16::from_be_bytes(value[1..3].try_into().unwrap());
            if attempt > 0 {
                self.tried.insert(sequence, attempt);
            }
        }
        if key.starts_with(&table(b'o', FERRY)) {
            // The message begins behind the id, with its version and target.
            let id = id_of(value);
            let body = value.slice(21 + id.len()..);
            let len = usize::from(u16::from_be_bytes(body[1..3].try_into().unwrap()));
            let target = Partition::new(body.slice(3..3 + len)).unwrap();
            let sent = self.sent.entry(target).or_default();
            if sent.contains(&id) {
                self.broken.push(format!("message {id:?} was put again"));
            }
            sent.push(id);
        }
    }

    /// A target has absorbed messages: the next ones in order, each once.
    fn absorbed(&mut self, target: &Partition, batch: &Batch) {
        let sent = self.sent.get(target).cloned().unwrap_or_default();
        let absorbed = self.absorbed.entry(target.clone()).or_default();
        for write in &batch.writes {
            let Write::Put(key, value) = write else {
                continue;
            };
            if &key[..] != b"last" {
                continue;
            }
            if sent.get(*absorbed) != Some(value) {
                let expected = sent.get(*absorbed);
                self.broken.push(format!(
                    "{target} absorbed {value:?}, the next is {expected:?}"
                ));
            }
            self.tally.count("absorbed");
            *absorbed += 1;
        }
    }

    /// The count is right, and what waits has its timer.
    fn check(&mut self, change: &Change<'_>, name: &str) {
        let Some((state, gone)) = read_state(change.after, name) else {
            return;
        };
        let waiting = sequences(change.after, b'o', name).len() as u64;
        if state.rows_in - gone != waiting {
            self.broken.push(format!(
                "{name}: {waiting} wait, {} were put in and {gone} have left",
                state.rows_in
            ));
        }
        let owners = owners(change.timers, name, state.stamp);
        if state.is_owned && owners != 1 {
            self.broken
                .push(format!("{name} is owned and has {owners} timers"));
        }
        if !state.is_owned && waiting > 0 {
            self.broken
                .push(format!("{name} is not owned and {waiting} wait"));
        }
    }

    /// A sink is called: everything before it has been called before.
    pub(super) fn called(&mut self, delivery: &Delivery, is_taken: bool) {
        let sequence = delivery.sequence;
        let passed = self.mail.range(..sequence).find(|(earlier, _)| {
            !self.called.contains_key(earlier)
                && !self.tried.contains_key(earlier)
                && !self.excused.contains(earlier)
        });
        if let Some((earlier, _)) = passed {
            self.broken
                .push(format!("{sequence} is sent before {earlier}"));
        }
        if self.mail.get(&sequence) != Some(&delivery.id) {
            self.broken
                .push(format!("{sequence} is sent with another id"));
        }
        let calls = self.called.entry(sequence).or_default();
        *calls += 1;
        let tried = self.tried.get(&sequence).copied().unwrap_or(0);
        if delivery.attempt > (*calls).max(tried + 1) {
            self.broken.push(format!(
                "{sequence}: attempt {} in call {calls}",
                delivery.attempt
            ));
        }
        self.tally.count("called");
        if is_taken {
            self.delivered.insert(delivery.id.clone());
        }
    }

    /// Everything is over: nothing waits and nothing is lost.
    pub(super) fn conclude(&mut self, all: &BTreeMap<Partition, Rows>) {
        let empty = Rows::new();
        let rows = all.get(&source()).unwrap_or(&empty);
        let dead = sequences(rows, b'd', MAIL);
        let dead: BTreeSet<&Bytes> = dead.iter().filter_map(|it| self.mail.get(it)).collect();
        for id in self.mail.values() {
            if !self.delivered.contains(id) && !dead.contains(id) {
                self.broken.push(format!("{id:?} is lost"));
            }
        }
        for (target, sent) in &self.sent {
            let (absorbed, sent) = (self.absorbed.get(target).copied(), sent.len());
            if absorbed.unwrap_or(0) != sent {
                self.broken
                    .push(format!("{target} absorbed {absorbed:?} of {sent} messages"));
            }
        }
        for name in [MAIL, FERRY] {
            let waiting = sequences(rows, b'o', name).len();
            if waiting > 0 {
                self.broken
                    .push(format!("{name}: {waiting} wait at the end"));
            }
        }
    }
}

fn read_state(rows: &Rows, name: &str) -> Option<(Seen, u64)> {
    let key = |letter| Bytes::from([b"b\0\x08", &[letter][..], name.as_bytes()].concat());
    let state = rows.get(&key(b's'))?;
    let seen = Seen {
        is_owned: state[1] == 1,
        stamp: number(state, 2),
        rows_in: number(state, 34),
    };
    Some((seen, rows.get(&key(b'g')).map_or(0, |gone| number(gone, 1))))
}

/// How many timers of this stamp there are.
fn owners(timers: &Rows, name: &str, stamp: u64) -> usize {
    let owners = timers.iter().filter(|(key, value)| {
        let key = TimerKey::decode(key).unwrap();
        let row = TimerRow::decode(value).unwrap();
        key.reference == name && number(&row.payload, 1) == stamp
    });
    owners.count()
}

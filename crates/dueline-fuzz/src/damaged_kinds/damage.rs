//! What becomes of rows that nobody may have written.

use bytes::Bytes;
use dueline::kinds::fuzzing::forms;
use dueline::limits::DUE_MS_MAX;
use dueline::rows::{Header, TimerKey, TimerRow, class, is_of_class};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::TimerKind;

use super::world::{DAMAGED, World, decodes, form_of, relay_name};
use crate::script::Script;

/// Most bytes that are put into a row at once.
const BYTES_MAX: usize = 64;

const KINDS: [u8; 7] = [1, 2, 5, 8, 9, 12, 255];

impl World {
    /// Damages a row of a built-in kind, or what one of its timers carries.
    pub(super) fn damage(&mut self, script: &mut Script<'_>) {
        let rows = self.rows().into_iter();
        let rows: Vec<_> = rows
            .filter(|((_, key), value)| {
                let is_of_kind = form_of(key).is_some() || is_of_class(key, class::TIMER);
                is_of_kind && !self.sound.is_in(key) && !self.sound.is_in(value)
            })
            .collect();
        let Some(place) = usize::from(script.next()).checked_rem(rows.len()) else {
            return;
        };
        let ((partition, key), value) = &rows[place];
        if is_of_class(key, class::TIMER) {
            let Ok(mut row) = TimerRow::decode(value) else {
                return;
            };
            row.payload = self.changed(&row.payload, script);
            self.put(partition, key.clone(), row.encode());
        } else if script.next() == 0 {
            self.write(partition, Batch::new().delete(key.clone()));
            self.reached.insert("a row is gone".to_owned());
        } else {
            let changed = self.changed(value, script);
            self.put(partition, key.clone(), changed);
        }
    }

    /// A row or a timer that nobody has made.
    pub(super) fn insert(&mut self, script: &mut Script<'_>) {
        let partition = script.pick(&[0, 1, 2]);
        let partition = self.partitions()[partition].clone();
        let tail = self.tail(script);
        if script.next().is_multiple_of(2) {
            let kind = TimerKind(script.pick(&KINDS));
            let due_in_ms = script.pick(&[0, 1, 5_000, 90_000]);
            let key = TimerKey {
                kind,
                due_ms: self.timers.runtime().now_ms() + due_in_ms,
                generation: self.timers.runtime().draw_generation(),
                reference: tail,
            };
            let row = TimerRow {
                header: Header::default(),
                payload: self.payload_of(kind, script),
            };
            return self.put(&partition, key.encode(), row.encode());
        }
        let tables: Vec<_> = forms()
            .filter_map(|form| Some((form.kind.0, form.letter?)))
            .collect();
        let (kind, letter) = script.pick(&tables);
        let key = [&[class::BUILT_IN, 0, kind, letter], &tail[..]].concat();
        let value = match self.rows_of(kind, letter).as_slice() {
            values if !values.is_empty() && script.next().is_multiple_of(2) => {
                let place = usize::from(script.next()) % values.len();
                self.changed(&values[place], script)
            }
            _ => self.some_bytes(script),
        };
        self.put(&partition, Key::from(key), value);
    }

    /// Writes a row unless it speaks of the other record, and notes whether it decodes.
    fn put(&mut self, partition: &Partition, key: Key, value: Value) {
        if key.len() > 1_024 || self.sound.is_in(&key) || self.sound.is_in(&value) {
            return;
        }
        let what = form_of(&key).map_or("a timer", |form| form.what);
        let does = match form_of(&key) {
            Some(_) if !decodes(&key, &value) => "does not decode",
            _ => "differs",
        };
        self.reached.insert(format!("{what} {does}"));
        self.write(partition, Batch::new().put(key, value));
    }

    /// The end of a key, or the reference of a timer.
    fn tail(&self, script: &mut Script<'_>) -> Bytes {
        let damaged = &self.damaged;
        let sequence = [&[1], DAMAGED.as_bytes(), &[0; 7], &[script.next()]].concat();
        let timers = self.rows().into_keys().filter_map(|(_, key)| {
            let key = TimerKey::decode(&key).ok()?;
            Some(key.reference)
        });
        let mut tails: Vec<Bytes> = timers.filter(|it| !self.sound.is_in(it)).collect();
        tails.extend([
            Bytes::copy_from_slice(DAMAGED.as_bytes()),
            Bytes::copy_from_slice(damaged.ticket.as_bytes()),
            Bytes::from(sequence),
            Bytes::from(relay_name(DAMAGED)),
            Bytes::new(),
        ]);
        match usize::from(script.next()) {
            place if place < 2 * tails.len() => tails[place % tails.len()].clone(),
            _ => self.some_bytes(script),
        }
    }

    fn payload_of(&self, kind: TimerKind, script: &mut Script<'_>) -> Bytes {
        let payloads = self.rows().into_iter().filter_map(|((_, key), value)| {
            let key = TimerKey::decode(&key).ok().filter(|key| key.kind == kind)?;
            let is_other = self.sound.is_in(&key.reference);
            let row = TimerRow::decode(&value).ok().filter(|_| !is_other)?;
            Some(row.payload)
        });
        let payloads: Vec<Bytes> = payloads.collect();
        match script.next() {
            0 => Bytes::new(),
            1..=128 if !payloads.is_empty() => {
                let place = usize::from(script.next()) % payloads.len();
                self.changed(&payloads[place], script)
            }
            _ => self.some_bytes(script),
        }
    }

    fn rows_of(&self, kind: u8, letter: u8) -> Vec<Value> {
        let rows = self.rows().into_iter();
        let start = [class::BUILT_IN, 0, kind, letter];
        rows.filter(|((_, key), _)| key.starts_with(&start))
            .map(|(_, value)| value)
            .collect()
    }

    fn some_bytes(&self, script: &mut Script<'_>) -> Bytes {
        let count = usize::from(script.next()) % BYTES_MAX;
        Bytes::copy_from_slice(script.bytes(count))
    }

    /// The bytes with something wrong about them.
    fn changed(&self, bytes: &Bytes, script: &mut Script<'_>) -> Bytes {
        let mut changed = bytes.to_vec();
        let what = script.next() % 8;
        let place = usize::from(script.next()) % (changed.len() + 1);
        match what {
            0 if place < changed.len() => changed[place] ^= 1 << (script.next() % 8),
            1 if place < changed.len() => changed[place] = script.next(),
            2 => changed.truncate(place),
            3 => changed.extend_from_slice(&self.some_bytes(script)),
            4 => return self.some_bytes(script),
            5 => {
                let now_ms = self.timers.runtime().now_ms();
                let numbers = [
                    0,
                    1,
                    now_ms,
                    now_ms + 60_000,
                    DUE_MS_MAX,
                    u64::MAX - 1,
                    u64::MAX,
                ];
                let number = script.pick(&numbers).to_be_bytes();
                for (to, from) in changed.iter_mut().skip(place).zip(number) {
                    *to = from;
                }
            }
            6 => {
                let some = self.some_bytes(script);
                changed.splice(place..place, some);
            }
            _ => {}
        }
        Bytes::from(changed)
    }
}

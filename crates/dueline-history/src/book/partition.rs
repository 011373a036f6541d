use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use dueline::rows::{LaneHead, NameKey, class, is_of_class, is_reserved, lane_head};
use dueline::timers::TimerKind;

use super::place::{Change, Place, Put, occurrence_of};
use crate::{Commit, LaneWake, Occurrence, Octets, Source};

/// A partition as its commits left it.
#[derive(Clone, Debug, Default)]
pub struct PartitionBook {
    /// Its rows.
    pub rows: BTreeMap<Bytes, Row>,
    /// The row of each timer and dead timer.
    pub places: BTreeMap<Occurrence, Arc<Place>>,
    /// The keys of the rows of each name.
    named: BTreeMap<(u8, Octets), Vec<Bytes>>,
    /// What is no more.
    pub gone: BTreeMap<Occurrence, Gone>,
    /// Its wakes.
    pub wakes: Vec<LaneWake>,
    /// The largest epoch that committed here.
    pub epoch: u64,
}

/// A row, and who wrote it last.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its value.
    pub value: Bytes,
    /// The epoch of who wrote it.
    pub epoch: u64,
    /// When, by the clock of the history.
    pub at_ms: u64,
}

/// How an occurrence ended.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// The index of the commit.
    pub index: usize,
    /// The request of a user that it was the write of.
    pub request: Option<u64>,
    /// Whether it took effect.
    pub had_effect: bool,
}

/// What a commit did to a partition.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// What became of the timers that it wrote.
    pub changes: Vec<Change>,
    /// Occurrences that took effect in it and were gone before.
    pub after_the_end: Vec<(Occurrence, Gone)>,
    /// Keys of timers and dead timers that it deletes and that were not there.
    pub missing: Vec<Bytes>,
    /// Keys of timers and dead timers that it puts and that were there with other bytes.
    pub overwritten: Vec<Bytes>,
    /// Rows of the timer class whose keys do not decode and that it deletes.
    pub malformed: Vec<(Bytes, Bytes)>,
    /// Reserved rows that it writes and that a greater epoch wrote after it was asked for.
    pub of_newer_epochs: Vec<Bytes>,
    /// Names whose rows or timers it writes.
    pub names: Vec<(u8, Octets)>,
}

impl Applied {
    /// What this timer goes on as: the new scheduling of the same kind and reference.
    pub fn next_of(&self, of: &Occurrence) -> Option<&Arc<Place>> {
        self.changes.iter().find_map(|change| match change {
            Change::New { to }
                if to.occurrence.kind == of.kind && to.occurrence.reference == of.reference =>
            {
                Some(to)
            }
            _ => None,
        })
    }

    /// Where this timer lay before the commit, if the commit changed it.
    pub fn before(&self, of: &Occurrence) -> Option<&Place> {
        let mut places = self.changes.iter().filter_map(Change::from);
        places.find(|from| from.occurrence == *of)
    }
}

impl PartitionBook {
    /// Takes a commit in.
    pub(super) fn apply(&mut self, commit: &Commit, put: &Put) -> Applied {
        let mut applied = Applied::default();
        let mut before: Vec<(Occurrence, Option<Arc<Place>>)> = Vec::new();
        let mut displaced: Vec<(Occurrence, Bytes)> = Vec::new();
        for (key, value) in &commit.rows {
            let old = match value {
                Some(value) => {
                    let row = Row {
                        value: value.0.clone(),
                        epoch: commit.epoch,
                        at_ms: put.at_ms,
                    };
                    self.rows.insert(key.0.clone(), row)
                }
                None => self.rows.remove(&key.0),
            };
            if let (Some(old), Some(asked_ms)) = (&old, commit.asked_ms)
                && old.epoch > commit.epoch
                && old.at_ms > asked_ms
                && is_reserved(key)
            {
                applied.of_newer_epochs.push(key.0.clone());
            }
            let old = old.map(|row| row.value);
            let Some(occurrence) = occurrence_of(key) else {
                note_other_key(&mut applied, key, value.is_none(), old);
                continue;
            };
            if !before.iter().any(|(of, _)| *of == occurrence) {
                let place = self.places.get(&occurrence).cloned();
                before.push((occurrence.clone(), place));
            }
            note_name(
                &mut applied,
                (occurrence.kind, occurrence.reference.clone()),
            );
            match (value, old) {
                (None, None) => applied.missing.push(key.0.clone()),
                (None, Some(_)) => {
                    if self
                        .places
                        .get(&occurrence)
                        .is_some_and(|it| it.key == key.0)
                    {
                        self.places.remove(&occurrence);
                    }
                    self.forget_named(&occurrence, key);
                }
                (Some(value), old) => {
                    if old.is_some_and(|old| old != value.0) {
                        applied.overwritten.push(key.0.clone());
                    }
                    if let Some(key) = self.put(&occurrence, key, value, put) {
                        displaced.push((occurrence, key));
                    }
                }
            }
        }
        for (occurrence, key) in displaced {
            if self.rows.contains_key(&key) {
                applied.changes.push(Change::Twice { occurrence });
            }
        }
        self.compare(commit, before, put.index, &mut applied);
        applied
    }

    /// Puts a row of a timer; the key of another row of the same occurrence.
    fn put(
        &mut self,
        occurrence: &Occurrence,
        key: &Bytes,
        value: &Bytes,
        put: &Put,
    ) -> Option<Bytes> {
        self.forget_named(occurrence, key);
        let place = Place::read(key, value, put)?;
        if place.is_named() {
            let name = (occurrence.kind, occurrence.reference.clone());
            self.named.entry(name).or_default().push(key.clone());
        }
        let old = self.places.insert(occurrence.clone(), Arc::new(place))?;
        (old.key != *key).then(|| old.key.clone())
    }

    fn forget_named(&mut self, occurrence: &Occurrence, key: &Bytes) {
        let name = (occurrence.kind, occurrence.reference.clone());
        if let Some(keys) = self.named.get_mut(&name) {
            keys.retain(|it| it != key);
            if keys.is_empty() {
                self.named.remove(&name);
            }
        }
    }

    /// What the commit made of each occurrence that it touched.
    fn compare(
        &mut self,
        commit: &Commit,
        before: Vec<(Occurrence, Option<Arc<Place>>)>,
        index: usize,
        applied: &mut Applied,
    ) {
        for mark in &commit.effects {
            if let Some(gone) = self.gone.get(&mark.occurrence) {
                applied.after_the_end.push((mark.occurrence.clone(), *gone));
            }
        }
        for (occurrence, from) in before {
            let to = self.places.get_mut(&occurrence);
            let change = match (from, to) {
                (None, None) => continue,
                (None, Some(to)) => {
                    // A kick keeps the earlier due of a timer that was made to fire now.
                    if commit.source == Source::User {
                        let place = Arc::make_mut(to);
                        place.put.hurried_to_ms = place.at_ms;
                    }
                    Change::New { to: Arc::clone(to) }
                }
                (Some(from), None) => {
                    let is_it = |mark: &crate::EffectMark| mark.occurrence == occurrence;
                    let gone = Gone {
                        index,
                        request: commit.request,
                        had_effect: commit.effects.iter().any(is_it),
                    };
                    self.gone.entry(occurrence).or_insert(gone);
                    Change::Gone { from }
                }
                (Some(from), Some(to)) => {
                    let place = Arc::make_mut(to);
                    place.put.scheduled = from.put.scheduled.clone();
                    place.put.hurried_to_ms = if commit.source == Source::User {
                        from.put.hurried_to_ms.min(place.at_ms)
                    } else {
                        from.put.hurried_to_ms
                    };
                    if from.is_same_row(to) {
                        continue;
                    }
                    let to = Arc::clone(to);
                    Change::Moved { from, to }
                }
            };
            applied.changes.push(change);
        }
    }

    /// The rows of a name: those of its timers and dead timers that say they have one.
    pub fn named(&self, kind: u8, reference: &Octets) -> impl Iterator<Item = &Arc<Place>> {
        let keys = self.named.get(&(kind, reference.clone()));
        keys.into_iter().flatten().filter_map(|key| {
            let occurrence = occurrence_of(key)?;
            self.places.get(&occurrence)
        })
    }

    /// The first row of each lane, malformed ones included.
    pub fn lanes(&self) -> impl Iterator<Item = LaneHead> {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let kind = next.take()?;
            let start = [class::TIMER, 0, kind];
            // A key too short to name its kind lies before all lanes.
            let start = if kind == 0 { &start[..2] } else { &start[..] };
            let start = Bound::Included(start);
            let mut behind = self.rows.range::<[u8], _>((start, Bound::Unbounded));
            let head = lane_head(behind.next()?.0)?;
            next = head.kind.0.checked_add(1);
            Some(head)
        })
    }

    /// Whether a kind is paused.
    pub fn is_paused(&self, kind: TimerKind) -> bool {
        self.rows.contains_key(&[class::PAUSE, 0, kind.0][..])
    }

    /// The timers that are there, dead ones left out.
    pub fn alive(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.places.values().filter(|place| place.dead.is_none())
    }
}

fn note_name(applied: &mut Applied, name: (u8, Octets)) {
    if !applied.names.contains(&name) {
        applied.names.push(name);
    }
}

fn note_other_key(applied: &mut Applied, key: &Bytes, is_delete: bool, old: Option<Bytes>) {
    if let Ok(name) = NameKey::decode(key) {
        note_name(applied, (name.kind.0, Octets(name.reference)));
    } else if is_delete
        && is_of_class(key, class::TIMER)
        && let Some(old) = old
    {
        applied.malformed.push((key.clone(), old));
    }
}

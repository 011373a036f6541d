use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dueline::rows::{
    NameKey, NameRow, PauseKey, TimerKey, TimerRow, class, class_end, class_start, is_of_class,
    lane_head,
};
use dueline::store::{Batch, Key, Partition, Value, Wake, Write};
use dueline::timers::TimerKind;

use super::Source;
use super::diff::{Change, Place, changes};
use super::{cuts_of, effects_of};

/// One scheduling of one timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The kind of the timer.
    pub kind: TimerKind,
    /// The generation drawn for the scheduling.
    pub generation: u64,
    /// The caller's identity of the timer.
    pub reference: Bytes,
}

/// Every row as the committed batches left it, and every rule that one of them broke.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(super) rows: BTreeMap<Partition, BTreeMap<Key, Value>>,
    gone: BTreeSet<(Partition, Occurrence)>,
    effects: BTreeSet<(Partition, Occurrence)>,
    latest_ms: u64,
    resumes: u64,
    broken: Vec<String>,
}

impl Ledger {
    /// The rules that were broken, in the order in which it happened; empty is right.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// How many occurrences took effect.
    pub fn effects(&self) -> usize {
        self.effects.len()
    }

    /// How often a paused kind was resumed.
    pub fn resumes(&self) -> u64 {
        self.resumes
    }

    /// The kinds that are paused.
    pub fn paused(&self, partition: &Partition) -> Vec<TimerKind> {
        let Some(rows) = self.rows.get(partition) else {
            return Vec::new();
        };
        rows.range(class_start(class::PAUSE)..class_end(class::PAUSE))
            .filter_map(|(key, _)| PauseKey::decode(key).ok())
            .map(|key| key.kind)
            .collect()
    }

    /// Whether this occurrence took effect.
    pub fn has_effect(&self, partition: &Partition, occurrence: &Occurrence) -> bool {
        let entry = (partition.clone(), occurrence.clone());
        self.effects.contains(&entry)
    }

    pub(super) fn broke(&mut self, rule: impl Into<String>) {
        self.broken.push(rule.into());
    }

    /// Takes a committed batch in and holds it to the rules. An [`Arena`](super::Arena) does it by itself;
    /// another store shows its commits in their order, with the wall clock of each in milliseconds.
    pub fn committed(&mut self, source: Source, partition: &Partition, batch: &Batch, now_ms: u64) {
        self.latest_ms = self.latest_ms.max(now_ms);
        let rows = self.rows.entry(partition.clone()).or_default();
        let before = rows.clone();
        for write in &batch.writes {
            match write {
                Write::Put(key, value) => rows.insert(key.clone(), value.clone()),
                Write::Delete(key) => rows.remove(key),
            };
        }
        let pauses = |rows: &BTreeMap<Key, Value>| {
            let class = class_start(class::PAUSE)..class_end(class::PAUSE);
            rows.range(class).count()
        };
        if pauses(rows) < pauses(&before) {
            self.resumes += 1;
        }
        let found = changes(&before, rows, batch);
        let mut effects = effects_of(batch);
        let cuts = cuts_of(batch);
        for change in &found {
            self.judge(source, partition, change, &effects, &cuts, now_ms);
            if let Change::Gone { occurrence, .. } = change {
                effects.remove(occurrence);
            }
        }
        for occurrence in effects {
            self.broke(format!("an effect without its timer: {occurrence:?}"));
        }
        self.check_names(partition, batch);
        if source == Source::Engine {
            self.check_set_aside(&before, batch);
        }
    }

    fn judge(
        &mut self,
        source: Source,
        partition: &Partition,
        change: &Change,
        effects: &BTreeSet<Occurrence>,
        cuts: &BTreeSet<Occurrence>,
        now_ms: u64,
    ) {
        match change {
            Change::Twice { occurrence } => {
                self.broke(format!("two rows of one occurrence: {occurrence:?}"));
            }
            Change::New { occurrence } => {
                let entry = (partition.clone(), occurrence.clone());
                if self.gone.contains(&entry) {
                    self.broke(format!("came back from the gone: {occurrence:?}"));
                }
            }
            Change::Gone { occurrence, from } => {
                let entry = (partition.clone(), occurrence.clone());
                if effects.contains(occurrence) {
                    if !self.effects.insert(entry.clone()) {
                        self.broke(format!("took effect twice: {occurrence:?}"));
                    }
                    if from.is_early(now_ms, self.latest_ms) {
                        self.broke(format!("took effect early, at {now_ms}: {from:?}"));
                    }
                } else if source == Source::Engine && !cuts.contains(occurrence) {
                    self.broke(format!("vanished at {now_ms} without an effect: {from:?}"));
                }
                self.gone.insert(entry);
            }
            Change::Moved { from, to, .. } => {
                if source == Source::Engine
                    && let Some(rule) = from.breaks_a_rule_on_its_way_to(to)
                {
                    self.broke(format!("{rule}: {from:?} became {to:?} at {now_ms}"));
                }
            }
        }
    }

    /// Every name that the batch touched points at its row, and the row has its name.
    fn check_names(&mut self, partition: &Partition, batch: &Batch) {
        let mut names: Vec<NameKey> = Vec::new();
        for write in &batch.writes {
            if let Ok(name) = NameKey::decode(write.key()) {
                names.push(name);
            } else if let Some(place) = Place::key_of(write.key()) {
                names.push(NameKey {
                    kind: place.kind,
                    reference: place.reference,
                });
            }
        }
        let Some(rows) = self.rows.get(partition) else {
            return;
        };
        let mut wrong = Vec::new();
        for name in names {
            let named: Vec<NameRow> = Place::all_named(rows, &name);
            let found = rows.get(&name.encode()).map(NameRow::decode);
            match (named.as_slice(), found) {
                ([], None) => {}
                ([row], Some(Ok(found))) if *row == found => {}
                (rows, found) => wrong.push(format!(
                    "a name and its timer disagree: {name:?} is {found:?}, the rows say {rows:?}"
                )),
            }
        }
        self.broken.extend(wrong);
    }

    /// A malformed row leaves its place only for quarantine, byte for byte.
    fn check_set_aside(&mut self, before: &BTreeMap<Key, Value>, batch: &Batch) {
        for write in &batch.writes {
            let Write::Delete(key) = write else { continue };
            let Some(value) = before.get(key) else {
                continue;
            };
            if !is_of_class(key, class::TIMER) || TimerKey::decode(key).is_ok() {
                continue;
            }
            let kept = batch.writes.iter().any(|write| match write {
                Write::Put(to, kept) => is_of_class(to, class::QUARANTINE) && kept == value,
                Write::Delete(_) => false,
            });
            if !kept {
                self.broke(format!("a malformed row vanished: {key:?}"));
            }
        }
    }

    /// Every lane that is not paused has a wake at or before its first row, or now. To be shown all wakes
    /// that are stored behind a commit.
    pub fn check_wakes(&mut self, partition: &Partition, wakes: &[Wake], now_ms: u64) {
        self.latest_ms = self.latest_ms.max(now_ms);
        let Some(rows) = self.rows.get(partition) else {
            return;
        };
        let mut wrong = Vec::new();
        let mut lane = None;
        for (key, _) in rows.range(class_start(class::TIMER)..class_end(class::TIMER)) {
            let Some(head) = lane_head(key) else { continue };
            if lane == Some(head.kind) {
                continue;
            }
            lane = Some(head.kind);
            let pause = PauseKey { kind: head.kind }.encode();
            let until_ms = head.due_ms.max(self.latest_ms);
            let awake = wakes.iter().any(|wake| {
                wake.partition == *partition && wake.kind == head.kind && wake.at_ms <= until_ms
            });
            if !awake && !rows.contains_key(&pause) {
                wrong.push(format!(
                    "the lane of kind {} has no wake for its first row, due at {}, at {now_ms}",
                    head.kind, head.due_ms
                ));
            }
        }
        self.broken.extend(wrong);
    }

    /// The timers that are there, in the order of their keys.
    pub fn timers(&self, partition: &Partition) -> Vec<(TimerKey, Option<TimerRow>)> {
        let Some(rows) = self.rows.get(partition) else {
            return Vec::new();
        };
        rows.range(class_start(class::TIMER)..class_end(class::TIMER))
            .filter_map(|(key, value)| {
                Some((TimerKey::decode(key).ok()?, TimerRow::decode(value).ok()))
            })
            .collect()
    }
}

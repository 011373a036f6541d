//! What must be true of the rows after every commit.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dueline::kinds::outcome_delivery::OUTCOME_DELIVERY;
use dueline::kinds::ticket_expiry::{TICKET_EXPIRY, TicketId};
use dueline::memory::MemoryStore;
use dueline::rows::{TimerKey, TimerRow, class, class_end, class_start};
use dueline::store::{Key, Partition, ReadStore, ScanRange, Value};
use dueline_testkit::block_on;

use super::super::end_of;
use super::client::Told;
use super::process::{ACTOR_MAX, HOOK_TOTAL, RESOURCE_MAX};

/// What a row of an open ticket says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Open {
    expires_at_ms: u64,
    timer_due_ms: u64,
    resource: Bytes,
    actor: Option<Bytes>,
    key: Option<Bytes>,
    pub(super) session: Option<Bytes>,
}

/// The rows as they are, by their tables.
#[derive(Debug, Default)]
struct Rows {
    open: BTreeMap<TicketId, Open>,
    index: BTreeMap<Bytes, TicketId>,
    resources: BTreeMap<Bytes, Option<u64>>,
    actors: BTreeMap<Bytes, Option<u64>>,
    aside: BTreeMap<TicketId, u64>,
    outcomes: Vec<(String, String)>,
    timers: BTreeSet<(TicketId, u64)>,
    hook_total: u64,
}

/// Watches the commits of one partition.
#[derive(Debug)]
pub(super) struct Checker {
    open: BTreeMap<TicketId, Open>,
    pub(super) ended: BTreeMap<TicketId, String>,
    pub(super) opened: BTreeMap<TicketId, Open>,
    pub(super) broken: Vec<String>,
    pub(super) set_aside: u64,
}

fn length_prefixed(row: &mut &[u8]) -> Bytes {
    let (len, rest) = row.split_at(2);
    let (field, rest) = rest.split_at(usize::from(u16::from_be_bytes([len[0], len[1]])));
    *row = rest;
    Bytes::copy_from_slice(field)
}

fn number(row: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(row[at..at + 8].try_into().unwrap())
}

fn open_of(row: &[u8]) -> Open {
    let flags = row[1];
    let mut rest = &row[34..];
    let resource = length_prefixed(&mut rest);
    let mut optional = |flag: u8| (flags & flag != 0).then(|| length_prefixed(&mut rest));
    Open {
        expires_at_ms: number(row, 10),
        timer_due_ms: number(row, 18),
        resource,
        actor: optional(1),
        key: optional(2),
        session: optional(4),
    }
}

fn id_of(bytes: &[u8]) -> TicketId {
    TicketId::from_bytes(bytes.try_into().unwrap())
}

fn counter_of(row: &[u8]) -> Option<u64> {
    (row.len() == 17).then(|| number(row, 1))
}

impl Rows {
    fn of<'a>(all: impl IntoIterator<Item = (&'a Key, &'a Value)>) -> Self {
        let mut rows = Self::default();
        for (key, value) in all {
            if *key == HOOK_TOTAL {
                rows.hook_total = number(value, 0);
            } else if key.starts_with(&[class::TIMER, 0]) {
                rows.take_timer(key, value);
            } else if key.starts_with(&[class::BUILT_IN, 0]) {
                rows.take(key, value);
            }
        }
        rows
    }

    fn take_timer(&mut self, key: &Key, value: &Value) {
        let (key, row) = (TimerKey::decode(key).unwrap(), TimerRow::decode(value));
        if key.kind == TICKET_EXPIRY {
            let due_ms = row.unwrap().header.original_due_ms;
            self.timers.insert((id_of(&key.reference), due_ms));
        }
    }

    fn take(&mut self, key: &Key, value: &Value) {
        let field = key.slice(4..);
        match (key[2], key[3]) {
            (kind, b'o') if kind == OUTCOME_DELIVERY.0 => self.outcomes.push(end_of(value)),
            (kind, _) if kind != TICKET_EXPIRY.0 => {}
            (_, b't') => drop(self.open.insert(id_of(&field), open_of(value))),
            (_, b'i') => drop(self.index.insert(field, id_of(&value[1..]))),
            (_, b'r') => drop(self.resources.insert(field, counter_of(value))),
            (_, b'a') => drop(self.actors.insert(field, counter_of(value))),
            (_, b'x') => drop(self.aside.insert(id_of(&field), number(value, 9))),
            other => panic!("a row of an unknown table: {other:?}"),
        }
    }
}

/// Every row of a partition that the rules are about.
pub(super) fn rows_in(memory: &MemoryStore, partition: &Partition) -> BTreeMap<Key, Value> {
    let mut rows = BTreeMap::new();
    for of in [class::BUILT_IN, class::TIMER] {
        let range = ScanRange::new(class_start(of), class_end(of), 4_000);
        let page = block_on(memory.scan(partition, &range)).unwrap();
        assert!(page.next.is_none());
        rows.extend(page.rows);
    }
    let total = block_on(memory.get(partition, &HOOK_TOTAL)).unwrap();
    rows.extend(total.map(|total| (HOOK_TOTAL, total)));
    rows
}

impl Checker {
    pub(super) fn new() -> Self {
        Self {
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            opened: BTreeMap::new(),
            broken: Vec::new(),
            set_aside: 0,
        }
    }

    /// A commit has left these rows, at this time by the store's clock.
    pub(super) fn committed<'a>(
        &mut self,
        all: impl IntoIterator<Item = (&'a Key, &'a Value)>,
        now_ms: u64,
    ) {
        let rows = Rows::of(all);
        self.check_ends(&rows, now_ms);
        self.check_counters(&rows);
        self.check_keys(&rows);
        self.check_timers(&rows);
        self.set_aside += rows.aside.len() as u64;
        self.open = rows.open;
    }

    fn broke(&mut self, rule: String) {
        self.broken.push(rule);
    }

    /// A ticket ends once, in the commit that tells its outcome, in time or after it.
    fn check_ends(&mut self, rows: &Rows, now_ms: u64) {
        let mut told = BTreeMap::new();
        for (id, end) in &rows.outcomes {
            let id: TicketId = id.parse().unwrap();
            if told.insert(id, end.clone()).is_some() {
                self.broke(format!("{id} was told twice"));
            }
        }
        if rows.hook_total != told.len() as u64 {
            let total = rows.hook_total;
            self.broke(format!("the hooks counted {total} ends of {}", told.len()));
        }
        for (id, before) in &self.open.clone() {
            if rows.open.contains_key(id) {
                continue;
            }
            let Some(end) = told.get(id) else {
                self.broke(format!("{id} is gone without an outcome"));
                continue;
            };
            let in_time = now_ms < before.expires_at_ms;
            if matches!(end.as_str(), "consumed" | "released") != in_time {
                let by_ms = now_ms.abs_diff(before.expires_at_ms);
                self.broke(format!(
                    "{id} {end}, {by_ms} ms on the wrong side of its end"
                ));
            }
            self.ended.insert(*id, end.clone());
        }
        for (id, open) in &rows.open {
            if told.contains_key(id) {
                self.broke(format!("{id} is open and has ended"));
            }
            self.opened.insert(*id, open.clone());
        }
    }

    /// The counters are what is open, none is 0, and none is over its limit.
    fn check_counters(&mut self, rows: &Rows) {
        let mut resources: BTreeMap<Bytes, u64> = BTreeMap::new();
        let mut actors: BTreeMap<Bytes, u64> = BTreeMap::new();
        for open in rows.open.values() {
            *resources.entry(open.resource.clone()).or_default() += 1;
            if let Some(actor) = &open.actor {
                *actors.entry(actor.clone()).or_default() += 1;
            }
        }
        for (what, counted, stored, most) in [
            ("resource", &resources, &rows.resources, RESOURCE_MAX),
            ("actor", &actors, &rows.actors, ACTOR_MAX),
        ] {
            // A counter that the history has damaged says nothing until it is counted anew.
            let damaged: BTreeSet<_> = stored.iter().filter(|row| row.1.is_none()).collect();
            let names: BTreeSet<_> = counted.keys().chain(stored.keys()).collect();
            for name in names {
                if damaged.iter().any(|row| row.0 == name) {
                    continue;
                }
                let open = counted.get(name).copied().unwrap_or(0);
                let row = stored.get(name).copied().flatten();
                if row != (open > 0).then_some(open) || open > most {
                    self.broken.push(format!(
                        "{what} {name:?}: {open} are open, the row says {row:?}"
                    ));
                }
            }
        }
    }

    /// A key names the open ticket that has it, and nothing else.
    fn check_keys(&mut self, rows: &Rows) {
        let mut expected = BTreeMap::new();
        for (id, open) in &rows.open {
            if let Some(key) = &open.key {
                expected.insert(key.clone(), *id);
            }
        }
        if rows.index != expected {
            self.broke(format!("keys {:?} for {expected:?}", rows.index));
        }
    }

    /// Every open ticket has the one timer it waits for; nothing is set aside that is not open.
    fn check_timers(&mut self, rows: &Rows) {
        for (id, open) in &rows.open {
            let due_ms = rows.aside.get(id).copied().unwrap_or(open.timer_due_ms);
            if !rows.timers.contains(&(*id, due_ms)) {
                self.broke(format!(
                    "{id} waits for a timer at {due_ms} that is not there"
                ));
            }
        }
        for id in rows.aside.keys() {
            if !rows.open.contains_key(id) {
                self.broke(format!("{id} is set aside and not open"));
            }
        }
    }

    /// At the end nothing is left but what was told.
    pub(super) fn check_quiet<'a>(&mut self, all: impl IntoIterator<Item = (&'a Key, &'a Value)>) {
        let rows = Rows::of(all);
        if !rows.open.is_empty() || !rows.timers.is_empty() || !rows.aside.is_empty() {
            self.broke(format!("left at the end: {rows:?}"));
        }
        if self.ended.len() != self.opened.len() {
            let (ended, opened) = (self.ended.len(), self.opened.len());
            self.broke(format!("{opened} were opened, {ended} ended"));
        }
    }

    /// What clients were told has come about, and no ticket that was used had its session aborted.
    pub(super) fn check_told(
        &mut self,
        told: &[Told],
        aborted: &BTreeSet<TicketId>,
        has_sessions: bool,
    ) {
        let mut broken = Vec::new();
        for told in told {
            match told {
                Told::Opened(id) if !self.opened.contains_key(id) => {
                    broken.push(format!("{id} was given and never opened"));
                }
                Told::Ended(id, end) => {
                    let ended = self.ended.get(id).map(String::as_str);
                    if ended != Some(*end) {
                        broken.push(format!("{id} was {end} for its client, and {ended:?}"));
                    }
                }
                Told::Opened(_) | Told::Nothing => {}
            }
        }
        for (id, end) in &self.ended {
            let used = end == "consumed" || end == "released";
            let has_session = self.opened[id].session.is_some();
            if used && aborted.contains(id) {
                broken.push(format!("{id} was {end} with its session aborted"));
            }
            if has_sessions && !used && has_session && !aborted.contains(id) {
                broken.push(format!("{id} {end} and kept its session"));
            }
        }
        self.broken.extend(broken);
    }
}

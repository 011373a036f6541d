//! Histories made by hand.

use dueline::rows::{
    DeadKey, DeadReason, DeadRow, Failure, Flags, Header, NameKey, NameRow, TimerKey, TimerRow,
};
use dueline::timers::TimerKind;
use dueline_history::{
    Commit, EffectMark, EngineRules, Event, Invariant, Occurrence, Octets, Outcome, Policy, Scan,
    Source, Told, Verb, VerbName, What, check_all,
};

pub type Rows = Vec<(Octets, Option<Octets>)>;

pub const KIND: u8 = 16;
pub const NODE: u16 = 1;

/// A timer as one of its rows says it is.
#[derive(Clone, Debug)]
pub struct Row {
    pub key: TimerKey,
    pub header: Header,
    pub payload: &'static str,
}

impl Row {
    /// Anonymous, of the first kind, pending.
    pub fn new(reference: &'static str, generation: u64, due_ms: u64) -> Self {
        Self {
            key: TimerKey {
                kind: TimerKind(KIND),
                due_ms,
                generation,
                reference: reference.into(),
            },
            header: Header {
                original_due_ms: due_ms,
                ..Header::default()
            },
            payload: "payload",
        }
    }

    pub fn kind(mut self, kind: u8) -> Self {
        self.key.kind = TimerKind(kind);
        self
    }

    pub fn named(mut self) -> Self {
        self.header.flags.named = true;
        self
    }

    /// The same scheduling at another place.
    pub fn at(mut self, at_ms: u64) -> Self {
        self.key.due_ms = at_ms;
        self
    }

    pub fn claimed(mut self, until_ms: u64) -> Self {
        self.header.flags.claimed = true;
        self.header.attempt += 1;
        self.at(until_ms)
    }

    /// Failed at this time for this reason, with so many attempts behind it.
    pub fn failed(mut self, at_ms: u64, attempt: u16, error: &str) -> Self {
        self.header.flags = Flags {
            claimed: false,
            ..self.header.flags
        };
        self.header.attempt = attempt;
        self.header.failure = Some(Failure::new(at_ms, error));
        self
    }

    pub fn occurrence(&self) -> Occurrence {
        Occurrence {
            kind: self.key.kind.0,
            reference: Octets(self.key.reference.clone()),
            generation: self.key.generation,
        }
    }

    fn name(&self) -> Octets {
        let name = NameKey {
            kind: self.key.kind,
            reference: self.key.reference.clone(),
        };
        name.encode().into()
    }

    pub fn put(&self) -> Rows {
        let row = TimerRow {
            header: self.header.clone(),
            payload: self.payload.into(),
        };
        let mut rows: Rows = vec![(self.key.encode().into(), Some(row.encode().into()))];
        if self.header.flags.named {
            let name = NameRow::of(&self.key, &self.header);
            rows.push((self.name(), Some(name.encode().into())));
        }
        rows
    }

    pub fn delete(&self) -> Rows {
        let mut rows: Rows = vec![(self.key.encode().into(), None)];
        if self.header.flags.named {
            rows.push((self.name(), None));
        }
        rows
    }

    /// The delete of this row and the put of the other, whose name row stays if it has one.
    pub fn moved(&self, to: &Self) -> Rows {
        let mut rows: Rows = vec![(self.key.encode().into(), None)];
        rows.extend(to.put());
        rows
    }

    fn dead_key(&self) -> DeadKey {
        DeadKey {
            kind: self.key.kind,
            dead_at_ms: self.key.due_ms,
            generation: self.key.generation,
            reference: self.key.reference.clone(),
        }
    }

    /// The put of the dead row that this timer becomes, dead at the due of its key.
    pub fn put_dead(&self, reason: DeadReason) -> Rows {
        let row = DeadRow {
            header: self.header.clone(),
            reason,
            codec_version: 0,
            payload: self.payload.into(),
        };
        let mut rows: Rows = vec![(self.dead_key().encode().into(), Some(row.encode().into()))];
        if self.header.flags.named {
            let name = NameRow::of_dead(&self.dead_key());
            rows.push((self.name(), Some(name.encode().into())));
        }
        rows
    }

    pub fn died(&self, to: &Self, reason: DeadReason) -> Rows {
        let mut rows: Rows = vec![(self.key.encode().into(), None)];
        rows.extend(to.put_dead(reason));
        rows
    }

    pub fn effect(&self) -> EffectMark {
        EffectMark {
            occurrence: self.occurrence(),
            attempt: self.header.attempt + 1,
            due_ms: self.header.original_due_ms,
            next_due_ms: None,
        }
    }
}

/// A history that is being made.
#[derive(Clone, Debug)]
pub struct Story {
    pub events: Vec<Event>,
    pub now_ms: u64,
}

impl Story {
    pub fn new(rules: EngineRules) -> Self {
        let mut story = Self {
            events: Vec::new(),
            now_ms: 1_000,
        };
        story.push(What::Begin {
            seed: 1,
            deadline_ms: 0,
            lag_ms: 0,
            rules: Some(Box::new(rules)),
        });
        story.start(NODE, 1);
        story
    }

    pub fn plain() -> Self {
        Self::new(EngineRules::default())
    }

    pub fn start(&mut self, node: u16, epoch: u64) {
        self.push(What::Started { node, epoch });
        let kinds = vec![KIND, KIND + 1];
        self.push(What::Registry { node, kinds });
    }

    pub fn push(&mut self, what: What) -> &mut Self {
        self.push_as("test", what)
    }

    pub fn push_as(&mut self, actor: &str, what: What) -> &mut Self {
        self.events.push(Event {
            at_ms: self.now_ms,
            actor: actor.into(),
            what,
        });
        self
    }

    pub fn at(&mut self, now_ms: u64) -> &mut Self {
        self.now_ms = now_ms;
        self
    }

    /// A commit of the first node.
    pub fn engine(&mut self, rows: Rows, change: impl FnOnce(&mut Commit)) -> &mut Self {
        let mut commit = Commit {
            source: Source::Engine,
            node: Some(NODE),
            epoch: 1,
            partition: "p".into(),
            store_ms: self.now_ms,
            rows,
            ..Commit::default()
        };
        change(&mut commit);
        self.push_as("node-1", What::Commit(commit))
    }

    /// A commit of a client.
    pub fn user(&mut self, rows: Rows, change: impl FnOnce(&mut Commit)) -> &mut Self {
        let mut commit = Commit {
            source: Source::User,
            partition: "p".into(),
            store_ms: self.now_ms,
            rows,
            ..Commit::default()
        };
        change(&mut commit);
        self.push_as("client", What::Commit(commit))
    }

    pub fn verb(&mut self, request: u64, verb: VerbName, of: &Row) -> &mut Self {
        self.verb_by(request, verb, None, of)
    }

    pub fn verb_by(
        &mut self,
        request: u64,
        verb: VerbName,
        policy: Option<Policy>,
        of: &Row,
    ) -> &mut Self {
        let verb = Verb {
            request,
            partition: "p".into(),
            kind: of.key.kind.0,
            reference: Octets(of.key.reference.clone()),
            verb,
            policy,
            named: of.header.flags.named,
            due_ms: None,
        };
        self.push_as("client", What::Verb(verb))
    }

    pub fn told(&mut self, request: u64, told: Told) -> &mut Self {
        self.push_as("client", What::Told { request, told })
    }

    pub fn ok(&mut self, request: u64, outcome: Outcome, generation: u64) -> &mut Self {
        let told = Told::Ok {
            outcome,
            generation,
        };
        self.told(request, told)
    }

    /// A write of a request, from its invoke to its answer.
    pub fn request(
        &mut self,
        request: u64,
        (verb, outcome): (VerbName, Outcome),
        of: &Row,
        rows: Rows,
    ) -> &mut Self {
        self.verb(request, verb, of)
            .user(rows, |commit| commit.request = Some(request))
            .ok(request, outcome, of.key.generation)
    }

    pub fn schedule(&mut self, request: u64, timer: &Row) -> &mut Self {
        let created = (VerbName::Schedule, Outcome::Created);
        self.request(request, created, timer, timer.put())
    }

    pub fn cancel(&mut self, request: u64, timer: &Row) -> &mut Self {
        let removed = (VerbName::Cancel, Outcome::Removed);
        self.request(request, removed, timer, timer.delete())
    }

    /// The timer takes effect and is no more.
    pub fn fire(&mut self, timer: &Row) -> &mut Self {
        let effect = timer.effect();
        self.engine(timer.delete(), |commit| commit.effects.push(effect))
    }

    /// The timer takes effect and goes on as another.
    pub fn go_on(&mut self, timer: &Row, next: &Row) -> &mut Self {
        let mut effect = timer.effect();
        effect.next_due_ms = Some(next.header.original_due_ms);
        self.engine(timer.moved(next), |commit| commit.effects.push(effect))
    }

    /// Reads these rows, in the order of their keys.
    pub fn scan(&mut self, rows: &[&Rows], change: impl FnOnce(&mut Scan)) -> &mut Self {
        let puts = rows.iter().flat_map(|rows| rows.iter().cloned());
        let mut found: Vec<_> = puts
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        found.sort();
        let mut scan = Scan {
            partition: "p".into(),
            at_rest: false,
            rows: found,
            wakes: Vec::new(),
        };
        change(&mut scan);
        self.push(What::Scan(scan))
    }

    #[track_caller]
    pub fn holds(&self) -> &Self {
        assert_eq!(check_all(&self.events), []);
        self
    }

    /// This invariant is broken, and no other.
    #[track_caller]
    pub fn breaks(&self, invariant: Invariant, rule: &str) {
        let broken = check_all(&self.events);
        assert!(
            broken.iter().any(|it| it.text.contains(rule)),
            "{invariant}, {rule}: {broken:#?}"
        );
        assert!(
            broken.iter().all(|it| it.invariant == invariant),
            "{invariant} alone: {broken:#?}"
        );
    }
}

/// The history up to here, and one way on.
pub fn then(story: &Story, more: impl FnOnce(&mut Story)) -> Story {
    let mut story = story.clone();
    more(&mut story);
    story
}

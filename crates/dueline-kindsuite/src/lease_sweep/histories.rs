//! Random histories of leases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::lease_sweep::{
    Drain, Fence, Lease, LeaseName, LeaseOwner, LeaseSource, LeaseSweep, Leases,
};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::{HandlerError, Registration, TimerKind, Timers};
use dueline_testkit::model::{Random, Source};

use crate::storm::{Ask, Change, Scenario, Tally, play};

const HELD: &[u8] = b"b\0\x01l";
const EPOCH: &[u8] = b"b\0\x01e";
/// Written by holders, fenced: the epoch of the writer.
const STATE: &[u8] = b"state/";

/// Two leases are fought for by three owners. Of each term the source learns at some time that its work
/// has drained.
pub fn random_histories_keep_one_holder_and_growing_epochs() {
    let tally = Tally::default();
    play(300, || Fight {
        tally: tally.clone(),
        ..Fight::default()
    });
    tally.assert_at_least(
        100,
        &[
            "granted",
            "renewed",
            "kept",
            "swept",
            "let go",
            "fenced write",
            "stale write",
        ],
    );
}

/// The same for whoever else plays scenarios.
pub fn scenario(tally: &Tally) -> Box<dyn Scenario> {
    Box::new(Fight {
        tally: tally.clone(),
        ..Fight::default()
    })
}

/// What the source knows.
#[derive(Debug, Default)]
struct Known {
    /// Name, epoch and expiry of every term whose work has drained.
    drained: BTreeSet<(Bytes, u64, u64)>,
    all_drained: bool,
    asked: u64,
}

#[derive(Clone, Debug, Default)]
struct Oracle(Arc<Mutex<Known>>);

impl LeaseSource for Oracle {
    fn drain<'a>(
        &'a self,
        _: &'a Partition,
        lease: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>> {
        let mut known = self.0.lock().unwrap();
        known.asked += 1;
        let said = if known.has_drained(lease.name.as_bytes(), lease.epoch, lease.expires_at_ms) {
            Ok(Drain::Drained)
        } else {
            match known.asked % 5 {
                0 => Ok(Drain::Missing),
                1 => Err(HandlerError::new("the source cannot be reached")),
                watermark => Ok(Drain::Working { watermark }),
            }
        };
        Box::pin(std::future::ready(said))
    }
}

impl Known {
    fn has_drained(&self, name: &Bytes, epoch: u64, expires_at_ms: u64) -> bool {
        self.all_drained || self.drained.contains(&(name.clone(), epoch, expires_at_ms))
    }
}

#[derive(Debug, Default)]
struct Fight {
    oracle: Oracle,
    tally: Tally,
    /// The highest epoch that each name has had.
    highest: BTreeMap<Bytes, u64>,
    /// The terms that were seen: name, epoch, expiry.
    terms: Vec<(Bytes, u64, u64)>,
}

/// A row of a held lease, as FORMAT.md has it.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    epoch: u64,
    expires_at_ms: u64,
    watermark: u64,
    owner: Bytes,
}

fn number(value: &Value, at: usize) -> u64 {
    u64::from_be_bytes(value[at..at + 8].try_into().unwrap())
}

fn held(value: &Value) -> Held {
    assert_eq!(value[0], 1);
    Held {
        epoch: number(value, 1),
        expires_at_ms: number(value, 9),
        watermark: number(value, 25),
        owner: value.slice(33..),
    }
}

impl Scenario for Fight {
    fn kinds(&self, _: &Timers) -> Vec<(TimerKind, Registration)> {
        let (kind, sweep) = LeaseSweep::new(self.oracle.clone())
            .recheck_ms(2_000)
            .entry();
        vec![(kind, sweep.deadline_ms(3_000).concurrency(2))]
    }

    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask {
        let name = LeaseName::new(random.pick(&["a", "b"])).unwrap();
        let owner = LeaseOwner::new(random.pick(&["ann", "bob", "cy"])).unwrap();
        let highest = self.highest.get(name.as_bytes()).copied().unwrap_or(1);
        // Mostly the last epoch, sometimes one of a holder that does not know better.
        let epoch = highest.saturating_sub(random.pick(&[0, 0, 0, 1, 2]));
        let term_ms = random.pick(&[1, 800, 5_000, 5_000, 30_000]);
        let verb = random.below(10);
        if verb == 9 && !self.terms.is_empty() {
            let back = random.below(3.min(self.terms.len() as u64));
            let place = self.terms.len() - 1 - usize::try_from(back).unwrap();
            let term = self.terms[place].clone();
            self.oracle.0.lock().unwrap().drained.insert(term);
        }
        let (client, partition) = (client.clone(), partition.clone());
        let tally = self.tally.clone();
        Box::pin(async move {
            let leases = Leases::new(client.clone());
            match verb {
                0..4 => drop(leases.grant(&partition, &name, &owner, term_ms).await),
                4..6 => drop(leases.renew(&partition, &name, epoch, term_ms).await),
                6 => drop(leases.release(&partition, &name, epoch).await),
                _ => {
                    let key = [STATE, name.as_bytes()].concat();
                    let write = Batch::new().put(key, epoch.to_be_bytes().to_vec());
                    let write = Fence::new(&name, epoch).guard(write);
                    let outcome = client.store().apply(&partition, write).await;
                    match outcome.map(|outcome| outcome.is_committed()) {
                        Ok(true) => tally.count("fenced write"),
                        Ok(false) => tally.count("stale write"),
                        Err(_) => {}
                    }
                }
            }
        })
    }

    fn judge(&mut self, change: &Change<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, before, after) in change.of_prefix(HELD) {
            let name = key.slice(HELD.len()..);
            let before = before.as_ref().map(held);
            let after = after.as_ref().map(held);
            let found = self.judge_lease(change, &name, before.as_ref(), after.as_ref());
            broken.extend(found.map(|what| format!("{what}: {name:?} {before:?} -> {after:?}")));
        }
        for (key, value) in change.after {
            if key.starts_with(HELD) {
                let epoch = epoch_of(change.after, &key[HELD.len()..]);
                if epoch != Some((true, held(value).epoch)) {
                    broken.push(format!("the epoch of {key:?} is {epoch:?}"));
                }
            }
        }
        for (key, before, after) in change.of_prefix(STATE) {
            let writer = after.as_ref().map_or(0, |value| number(value, 0));
            let holder = epoch_of(change.after, &key[STATE.len()..]);
            if before.is_some_and(|value| number(&value, 0) > writer)
                || holder != Some((true, writer))
            {
                broken.push(format!("epoch {writer} wrote {key:?} beside {holder:?}"));
            }
        }
        broken
    }

    fn calm(&mut self) {
        self.oracle.0.lock().unwrap().all_drained = true;
    }

    fn judge_end(&mut self, rows: &BTreeMap<Key, Value>) -> Vec<String> {
        let left = rows.iter().filter(|(key, _)| key.starts_with(HELD));
        left.map(|(key, value)| format!("{key:?} is held for ever: {:?}", held(value)))
            .collect()
    }
}

impl Fight {
    /// One change of a lease's row.
    fn judge_lease(
        &mut self,
        change: &Change<'_>,
        name: &Bytes,
        before: Option<&Held>,
        after: Option<&Held>,
    ) -> Option<&'static str> {
        if let Some(after) = after {
            self.terms
                .push((name.clone(), after.epoch, after.expires_at_ms));
        }
        match (before, after) {
            (None, Some(after)) => {
                let highest = self.highest.entry(name.clone()).or_default();
                let grows = after.epoch > *highest;
                *highest = after.epoch;
                self.tally.count("granted");
                (!grows).then_some("an epoch was given twice")
            }
            (Some(before), Some(after)) => {
                let is_same = before.epoch == after.epoch && before.owner == after.owner;
                let grows = before.watermark <= after.watermark
                    && before.expires_at_ms <= after.expires_at_ms;
                let is_renewed = before.expires_at_ms < after.expires_at_ms;
                self.tally
                    .count(if is_renewed { "renewed" } else { "kept" });
                if !is_same {
                    return Some("two holders");
                }
                (!grows).then_some("expiry or watermark fell")
            }
            (Some(before), None) if change.source == Source::Engine => {
                if change.now_ms < before.expires_at_ms {
                    return Some("swept before it had expired");
                }
                self.tally.count("swept");
                let known = self.oracle.0.lock().unwrap();
                let drained = known.has_drained(name, before.epoch, before.expires_at_ms);
                (!drained).then_some("swept before it had drained")
            }
            (Some(_) | None, None) => {
                self.tally.count("let go");
                None
            }
        }
    }
}

/// Whether the lease is held by its epoch's row, and the epoch.
fn epoch_of(rows: &BTreeMap<Key, Value>, name: &[u8]) -> Option<(bool, u64)> {
    let key = Bytes::from([EPOCH, name].concat());
    let value = rows.get(&key)?;
    Some((value[1] == 1, number(value, 2)))
}

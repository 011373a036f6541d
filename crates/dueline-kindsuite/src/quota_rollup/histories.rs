//! Random histories of a quota.

use std::collections::{BTreeMap, BTreeSet};

use dueline::kinds::quota_rollup::{Limits, Quota, QuotaRollup, Quotas};
use dueline::store::{Key, Partition, Value};
use dueline::timers::{Registration, TimerKind, Timers};
use dueline_testkit::model::Random;

use crate::storm::{Ask, Change, Rows, Scenario, Tally, play};

const ROWS: &[u8] = b"b\0\x05";
const WINDOW_MS: u64 = 120_000;
const PERIOD_MS: u64 = 10_000;
/// From when on behind its end a window that was not closed is removed by the end of the next.
const DRAINED_MS: u64 = WINDOW_MS + 30_000;

/// A coordinator and three shards are charged; each total is at every moment what was absorbed, at most what
/// was charged, and exactly that once everything is absorbed. In the end nothing is left.
pub fn random_histories_count_every_charge_once() {
    let tally = Tally::default();
    play(300, || Ledger {
        tally: tally.clone(),
        ..Ledger::default()
    });
    tally.assert_at_least(100, &["charged", "contributed", "whole", "closed"]);
}

/// The same for whoever else plays scenarios.
pub fn scenario(tally: &Tally) -> Box<dyn Scenario> {
    Box::new(Ledger {
        tally: tally.clone(),
        ..Ledger::default()
    })
}

#[derive(Debug, Default)]
struct Ledger {
    tally: Tally,
    /// What was charged on the shards in the window that starts then.
    charged: BTreeMap<u64, u64>,
    /// The windows whose total is gone: a shard that is later still begins a new one.
    over: BTreeSet<u64>,
}

fn coordinator() -> Partition {
    Partition::new("all").unwrap()
}

fn quotas(timers: &Timers) -> Quotas {
    let quota = Quota::new("q", coordinator(), WINDOW_MS).unwrap();
    Quotas::new(timers.clone(), quota.period_ms(PERIOD_MS))
}

/// A row of the quota by its key: table, start of the window, what follows.
fn row_of(key: &Key) -> (u8, u64, &[u8]) {
    let fields = &key[ROWS.len()..];
    assert_eq!(&fields[1..3], b"\x01q");
    let start = u64::from_be_bytes(fields[11..19].try_into().unwrap());
    (fields[0], start, &fields[19..])
}

/// The first counter at this place of a row; 0 without a row.
fn counter(row: Option<&Value>, at: usize) -> u64 {
    row.map_or(0, |row| {
        u64::from_be_bytes(row[at..at + 8].try_into().unwrap())
    })
}

/// The row of this table and window in a partition.
fn find<'a>(rows: Option<&'a Rows>, like: &Key, letter: u8, rest: &[u8]) -> Option<&'a Value> {
    let mut key = like[..ROWS.len() + 19].to_vec();
    key[ROWS.len()] = letter;
    key.extend_from_slice(rest);
    rows?.get(&Key::from(key))
}

impl Ledger {
    fn judge_usage(
        &mut self,
        change: &Change<'_>,
        key: &Key,
        rows: [Option<&Value>; 2],
    ) -> Vec<String> {
        let (_, start, _) = row_of(key);
        let [before, after] = rows;
        let (was, is) = (counter(before, 1), counter(after, 1));
        if after.is_some() {
            self.tally.count("charged");
            *self.charged.entry(start).or_default() += is.saturating_sub(was);
            if is < was {
                return vec![format!("{} went from {was} to {is}", change.partition)];
            }
        } else if !is_drained(start, change) {
            self.tally.count("closed");
            let shard = change.partition.as_bytes();
            if find(change.all.get(&coordinator()), key, b'c', shard).is_some() {
                return vec![format!("{} went before its contribution", change.partition)];
            }
        }
        Vec::new()
    }

    fn judge_contribution(
        &self,
        change: &Change<'_>,
        key: &Key,
        rows: [Option<&Value>; 2],
    ) -> Vec<String> {
        let (_, start, shard) = row_of(key);
        let [before, after] = rows;
        let shard = Partition::new(shard.to_vec()).unwrap();
        let usage = find(change.all.get(&shard), key, b'u', &[]);
        let shown = counter(usage, 1);
        match after {
            Some(_) => self.tally.count("contributed"),
            None if is_drained(start, change) => return Vec::new(),
            None => {}
        }
        let absorbed = counter(after.or(before), 1);
        let is_forgotten = after.is_none() && usage.is_some() && absorbed < shown;
        if absorbed > shown && usage.is_some() || is_forgotten {
            return vec![format!(
                "{shard} shows {shown}, {absorbed} were absorbed: {rows:?}"
            )];
        }
        Vec::new()
    }

    fn judge_totals(&self, change: &Change<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, total) in change.after.iter().filter(|(key, _)| key.starts_with(ROWS)) {
            let (letter, start, _) = row_of(key);
            if letter != b't' || is_drained(start, change) {
                continue;
            }
            let absorbed = counter(Some(total), 10);
            let charged = self.charged.get(&start).copied().unwrap_or(0);
            let (mut sum, mut is_whole) = (0, true);
            for (partition, rows) in change.all {
                let usage = counter(find(Some(rows), key, b'u', &[]), 1);
                let of = find(Some(change.after), key, b'c', partition.as_bytes());
                sum += counter(of, 1);
                is_whole &= usage == counter(of, 1);
            }
            if absorbed > charged || absorbed < sum {
                broken.push(format!(
                    "{absorbed} of {charged} charged and {sum} contributed"
                ));
            }
            if is_whole && !self.over.contains(&start) {
                self.tally.count("whole");
                if absorbed != charged {
                    broken.push(format!("all is absorbed: {absorbed} of {charged}"));
                }
            }
        }
        broken
    }
}

fn is_drained(start: u64, change: &Change<'_>) -> bool {
    change.now_ms >= start + WINDOW_MS + DRAINED_MS
}

impl Scenario for Ledger {
    fn partitions(&self) -> Vec<Partition> {
        ["all", "s1", "s2", "s3"]
            .map(|name| Partition::new(name).unwrap())
            .to_vec()
    }

    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)> {
        vec![QuotaRollup::new(timers.clone()).entry()]
    }

    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask {
        let (quotas, partition) = (quotas(client), partition.clone());
        let amount = 1 + random.below(5);
        let what = random.below(10);
        Box::pin(async move {
            let limits = Limits::new([100], [20]);
            let _any_answer = match what {
                0..6 => quotas.charge(&partition, [amount]).await.map(drop),
                6..9 => {
                    let admitted = quotas.charge_within(&partition, [amount], &limits).await;
                    admitted.map(|_| ())
                }
                _ => quotas.usage(&partition).await.map(drop),
            };
        })
    }

    fn judge(&mut self, change: &Change<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, before, after) in change.of_prefix(ROWS) {
            let rows = [before.as_ref(), after.as_ref()];
            broken.extend(match row_of(&key).0 {
                b'u' => self.judge_usage(change, &key, rows),
                b'c' => self.judge_contribution(change, &key, rows),
                _ => {
                    if after.is_none() {
                        self.over.insert(row_of(&key).1);
                    }
                    Vec::new()
                }
            });
        }
        if *change.partition == coordinator() {
            broken.extend(self.judge_totals(change));
        }
        broken
    }

    fn judge_end(&mut self, rows: &Rows) -> Vec<String> {
        let left = rows.iter().filter(|(key, _)| key.starts_with(ROWS));
        left.map(|row| format!("left: {row:?}")).collect()
    }
}

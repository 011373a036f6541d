//! Random histories of a release gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dueline::BoxFuture;
use dueline::kinds::publication_recheck::{
    Dependency, Gate, Gated, GatedRecord, PublicationRecheck, Rechecks,
};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::{HandlerError, Registration, TimerCtx, TimerKind, Timers};
use dueline_testkit::model::Random;

use super::Press;
use crate::storm::{Ask, Change, Rows, Scenario, Tally, play};

const RECORDS: &[u8] = b"rec/";
const OUT: &[u8] = b"out/";

/// Three records are published again and again, with dependencies in three partitions. Those at home come
/// and go, the others come; obligations open and close. No record is ever released with one unmet, and in
/// the end, when all are visible, every record is.
pub fn random_histories_release_nothing_too_early() {
    let tally = Tally::default();
    play(300, || Newsroom {
        tally: tally.clone(),
        ..Newsroom::default()
    });
    tally.assert_at_least(
        100,
        &["published", "edited", "released", "released behind others"],
    );
}

/// The same for whoever else plays scenarios.
pub fn scenario(tally: &Tally) -> Box<dyn Scenario> {
    Box::new(Newsroom {
        tally: tally.clone(),
        ..Newsroom::default()
    })
}

#[derive(Clone, Debug, Default)]
struct Newsroom {
    tally: Tally,
    /// Everything is visible now, and nothing is obliged.
    is_calm: Arc<AtomicBool>,
    published: Arc<AtomicU64>,
}

/// As the press of the cases, until it is calm.
#[derive(Clone, Debug)]
struct Desk(Newsroom);

impl Gate for Desk {
    fn state_keys(&self, record: &Key) -> Vec<Key> {
        Press.state_keys(record)
    }

    fn gated(&self, record: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
        let is_calm = self.0.is_calm.load(Ordering::Relaxed);
        let gated = Press.gated(record)?;
        Ok(gated.map(|gated| Gated {
            is_obliged: gated.is_obliged && !is_calm,
            ..gated
        }))
    }

    fn is_visible(&self, dependency: &Dependency, row: Option<&Value>) -> bool {
        self.0.is_calm.load(Ordering::Relaxed) || Press.is_visible(dependency, row)
    }

    fn release<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        record: &'a GatedRecord,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        // The first line is the number of the publication.
        let number = record.value.split(|byte| *byte == b'\n').next();
        let out = [OUT, number.unwrap_or_default()].concat();
        let batch = Batch::new()
            .delete(record.key.clone())
            .put(out, record.value.clone());
        Box::pin(async move { Ok(batch) })
    }
}

impl Newsroom {
    fn draft(&self, random: &mut Random) -> (Key, String) {
        let number = self.published.fetch_add(1, Ordering::Relaxed);
        let mut text = format!("{number:04}\n");
        for _ in 0..random.below(6) {
            let partition = random.pick(&["p", "q", "q", "r"]);
            text.push_str(&format!("{partition} d{}\n", random.below(8)));
        }
        (Key::from(format!("rec/{}", random.below(3))), text)
    }

    /// Writes a record with its timer, whether there is one or not.
    fn publish(&self, random: &mut Random, client: &Timers) -> Ask {
        let (record, text) = self.draft(random);
        let (client, tally) = (client.clone(), self.tally.clone());
        Box::pin(async move {
            let p = Partition::new("p").unwrap();
            let rechecks = Rechecks::new(client.clone());
            if let Ok(plan) = rechecks.plan(&p, &record).await {
                let batch = Batch::new().put(record, text).append(plan.batch);
                let done = client.store().apply(&p, batch).await;
                if done.is_ok_and(|done| done.is_committed()) {
                    tally.count("published");
                }
            }
        })
    }

    /// Changes a record that waits, and leaves its timer alone: the cursor is for another one now.
    fn edit(&self, random: &mut Random, client: &Timers) -> Ask {
        let (record, text) = self.draft(random);
        let (client, tally) = (client.clone(), self.tally.clone());
        Box::pin(async move {
            let p = Partition::new("p").unwrap();
            let batch = Batch::new()
                .require_present(record.clone())
                .put(record, text);
            let done = client.store().apply(&p, batch).await;
            if done.is_ok_and(|done| done.is_committed()) {
                tally.count("edited");
            }
        })
    }
}

fn put(client: &Timers, partition: &Partition, key: String, row: String) -> Ask {
    let (client, partition) = (client.clone(), partition.clone());
    Box::pin(async move {
        let batch = Batch::new().put(key, row);
        let _any_answer = client.store().apply(&partition, batch).await;
    })
}

impl Scenario for Newsroom {
    fn partitions(&self) -> Vec<Partition> {
        ["p", "q", "r"]
            .map(|name| Partition::new(name).unwrap())
            .to_vec()
    }

    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)> {
        vec![PublicationRecheck::new(Desk(self.clone()), timers.clone()).entry()]
    }

    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask {
        let p = Partition::new("p").unwrap();
        match random.below(10) {
            0 => self.publish(random, client),
            1 => self.edit(random, client),
            2..8 => {
                let is_visible = *partition != p || random.chance(70);
                let row = if is_visible { "visible" } else { "draft" };
                let key = format!("d{}", random.below(8));
                put(client, partition, key, row.to_owned())
            }
            8 => {
                let open = random.pick(&["", "", "", "", "", "open"]);
                let state = format!("{}|{}|{open}", random.below(2), random.below(2));
                put(client, &p, super::STATE.to_owned(), state)
            }
            _ => {
                let record = Key::from(format!("rec/{}", random.below(3)));
                let rechecks = Rechecks::new(client.clone());
                Box::pin(async move {
                    let _any_answer = rechecks.look_now(&p, &record).await;
                })
            }
        }
    }

    fn judge(&mut self, change: &Change<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, before, after) in change.of_prefix(OUT) {
            self.tally.count("released");
            if before.is_some() {
                broken.push(format!("{key:?} was released before"));
            }
            if self.is_calm.load(Ordering::Relaxed) {
                continue;
            }
            let text = after.unwrap_or_default();
            let lines = std::str::from_utf8(&text).unwrap().lines();
            let mut others = 0;
            for (partition, key) in lines.filter_map(|line| line.split_once(' ')) {
                let of = super::dependency(partition, key);
                let rows = change.all.get(&of.partition);
                let row = rows.and_then(|rows| rows.get(&of.key));
                others += u64::from(of.partition != *change.partition);
                if !Press.is_visible(&of, row) {
                    broken.push(format!("released without {of:?}: {text:?}"));
                }
            }
            if others > 0 {
                self.tally.count("released behind others");
            }
            let state = change.before.get(super::STATE.as_bytes());
            if state.is_some_and(|state| state.ends_with(b"open")) {
                broken.push("released with an open obligation".to_owned());
            }
        }
        broken
    }

    fn calm(&mut self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    fn judge_end(&mut self, rows: &Rows) -> Vec<String> {
        let left = rows.keys().filter(|key| key.starts_with(RECORDS));
        left.map(|key| format!("{key:?} was never released"))
            .collect()
    }
}

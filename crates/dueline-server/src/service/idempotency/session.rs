use std::collections::BTreeMap;
use std::sync::Arc;

use dueline::rows::TimerKey;
use dueline::store::{Batch, BatchOutcome, Key, Partition, ScanRange, StoreError, Value};
use dueline::timers::{Timer, TimerView, Timers};

use super::expiry::IDEMPOTENCY_EXPIRY;
use super::in_flight::{Holding, InFlight};
use super::record::{Record, Recorded};
use super::rows::{item_end, item_index, item_key, item_start, record_key};
use super::stamping_store::StampingStore;
use super::{Keyed, REMEMBERED_MS};
use crate::service::error::ServiceError;

/// What a request with a key begins with.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It was carried out before: this was the answer.
    Before(Box<Recorded>),
    /// It is to be carried out now, through this.
    Now(Session),
}

/// A request that is carried out now; without a key it changes nothing about the verbs.
#[derive(Debug)]
pub(crate) struct Session {
    timers: Timers,
    keyed: Option<Box<Stamped>>,
}

#[derive(Debug)]
struct Stamped {
    store: Arc<StampingStore>,
    record: RecordToWrite,
    _holding: Holding,
}

/// A record that is to be written, and what lies in its place.
#[derive(Clone, Debug)]
struct RecordToWrite {
    key: Key,
    observed: Option<Value>,
    fingerprint: String,
    expires_at_ms: u64,
    expiry: Batch,
    keep_record: bool,
}

impl RecordToWrite {
    fn batch(&self, answer: Option<Recorded>) -> Result<Batch, StoreError> {
        let record = Record::new(&self.fingerprint, self.expires_at_ms, answer);
        Ok(Batch::new()
            .require_unchanged(self.key.clone(), self.observed.clone())
            .put(self.key.clone(), record.encode()?)
            .append(self.expiry.clone()))
    }
}

/// Reads the record of a key and takes the key; the record that the request said before, or the one
/// to be written.
async fn begin(
    timers: &Timers,
    in_flight: &InFlight,
    partition: &Partition,
    keyed: &Keyed,
    keep_record: bool,
) -> Result<(Option<Record>, RecordToWrite, Holding), ServiceError> {
    let holding = in_flight
        .take(partition, &keyed.key)
        .ok_or(ServiceError::KeyInFlight)?;
    let key = record_key(&keyed.key);
    let observed = timers.store().get(partition, &key).await?;
    let now_ms = timers.runtime().now_ms();
    let before = observed
        .as_ref()
        .map(Record::decode)
        .transpose()?
        .filter(|record| now_ms < record.expires_at_ms);
    if let Some(record) = &before
        && record.fingerprint != keyed.fingerprint
    {
        return Err(ServiceError::KeyReused);
    }
    let expires_at_ms = now_ms.saturating_add(REMEMBERED_MS);
    let expiry = Timer::new(IDEMPOTENCY_EXPIRY, keyed.key.clone()).due_at(expires_at_ms);
    let record = RecordToWrite {
        key,
        observed,
        fingerprint: keyed.fingerprint.clone(),
        expires_at_ms,
        expiry: timers.plan_new(&expiry)?.batch,
        keep_record,
    };
    Ok((before, record, holding))
}

impl Session {
    /// Begins a request. `moved` says that the verb moves a timer and does not schedule it anew;
    /// `keep_record` that the request alone does not hold all that the answer shows.
    pub(crate) async fn begin(
        timers: &Timers,
        in_flight: &InFlight,
        partition: &Partition,
        keyed: Option<&Keyed>,
        moved: bool,
        keep_record: bool,
    ) -> Result<Begun, ServiceError> {
        let Some(keyed) = keyed else {
            return Ok(Begun::Now(Self {
                timers: timers.clone(),
                keyed: None,
            }));
        };
        let (before, record, holding) =
            begin(timers, in_flight, partition, keyed, keep_record).await?;
        if let Some(before) = before {
            return match before.answer {
                Some(answer) => Ok(Begun::Before(Box::new(answer))),
                None => Err(ServiceError::KeyReused),
            };
        }
        let stamp = record.clone();
        let store = Arc::new(StampingStore::new(
            Arc::clone(timers.store()),
            Box::new(
                move |batch| match Recorded::of_batch(batch, moved, keep_record) {
                    Some(answer) => stamp.batch(Some(answer)),
                    None => Ok(Batch::new()),
                },
            ),
        ));
        Ok(Begun::Now(Self {
            timers: Timers::new(Arc::clone(&store) as _, timers.runtime().clone()),
            keyed: Some(Box::new(Stamped {
                store,
                record,
                _holding: holding,
            })),
        }))
    }

    /// The verbs: what they write, the record of the key is written with.
    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Remembers an answer that wrote nothing: the timer stands as this view shows it. Returns
    /// whether it still does.
    pub(crate) async fn remember_unchanged(
        &self,
        partition: &Partition,
        view: &TimerView,
    ) -> Result<bool, ServiceError> {
        let Some(keyed) = &self.keyed else {
            return Ok(true);
        };
        if keyed.store.has_written() {
            return Ok(true);
        }
        let row = TimerKey {
            kind: view.kind,
            due_ms: view.next_at_ms,
            generation: view.generation,
            reference: view.reference.clone(),
        };
        let answer = {
            let now_ms = self.timers.runtime().now_ms();
            Recorded::of_view(view, now_ms, keyed.record.keep_record)
        };
        let batch = Batch::new()
            .require_present(row.encode())
            .append(keyed.record.batch(Some(answer))?);
        let outcome = keyed.store.unstamped().apply(partition, batch).await;
        Ok(outcome? == BatchOutcome::Committed)
    }
}

/// What a batch with a key begins with: the answers its requests had before, by their position, and
/// the session of the rest.
#[derive(Debug)]
pub(crate) struct BegunBatch {
    pub(crate) before: BTreeMap<u32, Recorded>,
    pub(crate) session: BatchSession,
}

/// A batch that is carried out now.
#[derive(Debug)]
pub(crate) struct BatchSession {
    timers: Timers,
    key: String,
    expires_at_ms: u64,
    _holding: Holding,
}

impl BatchSession {
    /// Begins a batch: its record is written first, and finds the records of its requests if it was
    /// begun before.
    pub(crate) async fn begin(
        timers: &Timers,
        in_flight: &InFlight,
        partition: &Partition,
        keyed: &Keyed,
    ) -> Result<BegunBatch, ServiceError> {
        let (before, record, holding) = begin(timers, in_flight, partition, keyed, false).await?;
        let session = Self {
            timers: timers.clone(),
            key: keyed.key.clone(),
            expires_at_ms: before
                .as_ref()
                .map_or(record.expires_at_ms, |before| before.expires_at_ms),
            _holding: holding,
        };
        if let Some(before) = before {
            if before.answer.is_some() {
                return Err(ServiceError::KeyReused);
            }
            let before = session.answers(partition).await?;
            return Ok(BegunBatch { before, session });
        }
        let written = timers.store().apply(partition, record.batch(None)?).await?;
        if written != BatchOutcome::Committed {
            return Err(ServiceError::Contended);
        }
        Ok(BegunBatch {
            before: BTreeMap::new(),
            session,
        })
    }

    async fn answers(
        &self,
        partition: &Partition,
    ) -> Result<BTreeMap<u32, Recorded>, ServiceError> {
        let mut answers = BTreeMap::new();
        let mut range = ScanRange::new(
            item_start(&self.key, self.expires_at_ms),
            item_end(&self.key, self.expires_at_ms),
            1_000,
        );
        loop {
            let page = self.timers.store().scan(partition, &range).await?;
            for (key, value) in &page.rows {
                if let Some(index) = item_index(key) {
                    answers.insert(index, Recorded::decode(value)?);
                }
            }
            if page.next.is_none() {
                return Ok(answers);
            }
            range = range.after(page.next);
        }
    }

    /// The verbs for one request of the batch.
    pub(crate) fn timers(&self, index: u32) -> Timers {
        let key = item_key(&self.key, self.expires_at_ms, index);
        let stamp = move |batch: &Batch| {
            let Some(answer) = Recorded::of_batch(batch, false, false) else {
                return Ok(Batch::new());
            };
            Ok(Batch::new()
                .require_absent(key.clone())
                .put(key.clone(), answer.encode()?))
        };
        let store = StampingStore::new(Arc::clone(self.timers.store()), Box::new(stamp));
        Timers::new(Arc::new(store), self.timers.runtime().clone())
    }
}

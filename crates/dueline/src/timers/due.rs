use bytes::Bytes;

use super::TimerKind;
use crate::rows::{Failure, Flags, Header, TimerKey, TimerRow};
use crate::store::{Key, Partition, ReadStore, ScanPage, ScanRange, StoreError, Value};

/// A timer that is being fired, as its handler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimer {
    key: TimerKey,
    header: Header,
    payload: Bytes,
    now_ms: u64,
    /// The due in the key under which it was found due: of a timer that this process has claimed, the
    /// one before the claim.
    found_due_ms: u64,
}

impl DueTimer {
    /// A due timer for a test of a handler: due now, first attempt, generation 1.
    pub fn for_test(
        kind: TimerKind,
        reference: impl Into<Bytes>,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self {
            key: TimerKey {
                kind,
                due_ms: 0,
                generation: 1,
                reference: reference.into(),
            },
            header: Header::default(),
            payload: payload.into(),
            now_ms: 0,
            found_due_ms: 0,
        }
    }

    /// The same timer as its n-th run; 1 is the first.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u16) -> Self {
        self.header.attempt = attempt.saturating_sub(1);
        self
    }

    /// The same timer with this due and this time of the run, in milliseconds since 1970.
    #[must_use]
    pub fn with_times(mut self, due_at_ms: u64, now_ms: u64) -> Self {
        self.key.due_ms = due_at_ms;
        self.found_due_ms = due_at_ms;
        self.header.original_due_ms = due_at_ms;
        self.now_ms = now_ms;
        self
    }

    pub(crate) fn new(key: TimerKey, row: TimerRow, now_ms: u64) -> Self {
        Self {
            found_due_ms: key.due_ms,
            key,
            header: row.header,
            payload: row.payload,
            now_ms,
        }
    }

    /// The same timer, claimed since it was found due at this time.
    #[must_use]
    pub(crate) fn found_due_at(mut self, found_due_ms: u64) -> Self {
        self.found_due_ms = found_due_ms;
        self
    }

    /// When it was found due. The engine moves it to no earlier due: a clock that was set back since
    /// then must not let it take effect before it is due again by that clock.
    pub(crate) fn found_due_ms(&self) -> u64 {
        self.found_due_ms
    }

    /// The time of this run.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn key(&self) -> &TimerKey {
        &self.key
    }

    /// The kind under which the handler was registered.
    pub fn kind(&self) -> TimerKind {
        self.key.kind
    }

    /// The caller's identity of the timer.
    pub fn reference(&self) -> &Bytes {
        &self.key.reference
    }

    /// The caller's bytes as they were scheduled, at most 480 KiB.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The due as it was asked for, in milliseconds since 1970.
    pub fn due_at_ms(&self) -> u64 {
        self.header.original_due_ms
    }

    /// Which run this is; 1 is the first. Runs that were cut by a crash count, runs that were given
    /// back by a clean stop do not.
    pub fn attempt(&self) -> u16 {
        if self.header.flags.claimed {
            self.header.attempt
        } else {
            self.header.attempt.saturating_add(1)
        }
    }

    /// Which scheduling of the timer this is.
    pub fn generation(&self) -> u64 {
        self.key.generation
    }

    /// Whether the timer has a name.
    pub fn is_named(&self) -> bool {
        self.header.flags.named
    }

    /// How long after its due it runs, in milliseconds.
    pub fn lateness_ms(&self) -> u64 {
        self.now_ms.saturating_sub(self.header.original_due_ms)
    }

    /// The last failure, if it has failed before.
    pub fn last_error(&self) -> Option<&Failure> {
        self.header.failure.as_ref()
    }

    /// The identity of this occurrence: the same for every retry and after a requeue, another for
    /// every new scheduling. What a receiver uses as its idempotency key.
    pub fn occurrence_id(&self, partition: &Partition) -> OccurrenceId {
        OccurrenceId {
            partition: partition.clone(),
            kind: self.key.kind,
            reference: self.key.reference.clone(),
            generation: self.key.generation,
        }
    }

    pub(crate) fn flags(&self) -> Flags {
        self.header.flags
    }
}

/// (partition, kind, reference, generation): names one scheduling of one timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OccurrenceId {
    /// The partition the timer lies in.
    pub partition: Partition,
    /// The kind of the timer.
    pub kind: TimerKind,
    /// The caller's identity of the timer.
    pub reference: Bytes,
    /// Which scheduling of the reference it is; opaque, it only ever grows.
    pub generation: u64,
}

impl OccurrenceId {
    /// Sixty-four bits of a keyed hash that does not change between versions: for jitter and
    /// compact ids.
    pub fn hash64(&self, salt: u64) -> u64 {
        use std::hash::Hasher;
        let mut hasher = siphasher::sip::SipHasher13::new_with_keys(0x6475_656c_696e_6531, salt);
        for part in [self.partition.as_bytes(), self.reference.as_ref()] {
            hasher.write(&(part.len() as u64).to_be_bytes());
            hasher.write(part);
        }
        hasher.write(&[self.kind.0]);
        hasher.write(&self.generation.to_be_bytes());
        hasher.finish()
    }
}

/// What a handler sees of the world: its own partition, read-only, and the time.
///
/// In a group the reads show the effects of the timers that fired before it and are not committed
/// yet; they commit together.
#[derive(Clone, Copy, Debug)]
pub struct TimerCtx<'a> {
    reads: &'a dyn ReadStore,
    partition: &'a Partition,
    now_ms: u64,
}

impl<'a> TimerCtx<'a> {
    /// A context over any store, for a test of a handler too.
    pub fn new(reads: &'a dyn ReadStore, partition: &'a Partition, now_ms: u64) -> Self {
        Self {
            reads,
            partition,
            now_ms,
        }
    }

    /// The reads of the partition.
    pub fn reads(&self) -> &'a dyn ReadStore {
        self.reads
    }

    /// The partition the timer lies in, the only one the reads show.
    pub fn partition(&self) -> &'a Partition {
        self.partition
    }

    /// The time of this run, in milliseconds since 1970; read anew for each.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The value of one key of the partition.
    ///
    /// # Errors
    /// As [`ReadStore::get`].
    pub async fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        self.reads.get(self.partition, key).await
    }

    /// One page of a range of the partition.
    ///
    /// # Errors
    /// As [`ReadStore::scan`].
    pub async fn scan(&self, range: &ScanRange) -> Result<ScanPage, StoreError> {
        self.reads.scan(self.partition, range).await
    }
}

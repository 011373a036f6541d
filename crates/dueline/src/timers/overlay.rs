//! The reads of a group: the store with the effects staged so far laid over it.

use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::future::BoxFuture;
use crate::mutants::{Mutant, planted};
use crate::ordered::OrderedMap;
use crate::rows::is_reserved;
use crate::store::{
    Cursor, Key, NamespaceStore, Partition, ReadStore, ScanPage, ScanRange, StoreError,
    StoreErrorKind, Value, Write, validate_ranges,
};

/// Shows staged writes, never cached reads: what is not staged is read from the store each time.
pub(crate) struct Overlay {
    store: Arc<dyn NamespaceStore>,
    partition: Partition,
    staged: Mutex<OrderedMap<Key, Option<Value>>>,
    reads_under_way: AtomicUsize,
    faulted: AtomicBool,
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Overlay")
    }
}

impl Overlay {
    pub(crate) fn new(store: Arc<dyn NamespaceStore>, partition: Partition) -> Self {
        Self {
            store,
            partition,
            staged: Mutex::default(),
            reads_under_way: AtomicUsize::new(0),
            faulted: AtomicBool::new(false),
        }
    }

    /// Lays the writes of one more batch over the store.
    pub(crate) fn stage(&self, writes: &[Write]) {
        let mut staged = self.lock();
        for write in writes {
            match write {
                Write::Put(key, value) => staged.insert(key.clone(), Some(value.clone())),
                Write::Delete(key) => staged.insert(key.clone(), None),
            };
        }
    }

    /// Takes everything staged away: it is committed, or will be planned again.
    pub(crate) fn clear(&self) {
        if planted(Mutant::LostEffectsStayVisible) {
            return self.lock().retain(|key, _| !is_reserved(key));
        }
        self.lock().clear();
    }

    /// Whether a staged batch deletes this key.
    pub(crate) fn deletes(&self, key: &Key) -> bool {
        matches!(self.lock().get(key), Some(None))
    }

    /// Whether a read of the store is waiting for its answer.
    pub(crate) fn is_reading(&self) -> bool {
        self.reads_under_way.load(Ordering::Acquire) > 0
    }

    /// Whether a read failed for a reason that is not the reader's, since this was last asked.
    pub(crate) fn take_fault(&self) -> bool {
        self.faulted.swap(false, Ordering::AcqRel)
    }

    fn lock(&self) -> MutexGuard<'_, OrderedMap<Key, Option<Value>>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, partition: &Partition) -> Result<(), StoreError> {
        if *partition == self.partition {
            return Ok(());
        }
        Err(StoreError::invalid(
            "a handler's context reads its own partition; give the handler a store handle of its \
             own for others",
        ))
    }

    async fn read<T>(&self, read: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        let _under_way = UnderWay::begin(&self.reads_under_way);
        let result = read.await;
        if let Err(error) = &result
            && error.kind() != StoreErrorKind::Invalid
        {
            self.faulted.store(true, Ordering::Release);
        }
        result
    }

    /// Merges what is staged into a page of the store.
    fn merge(&self, range: &ScanRange, page: ScanPage) -> ScanPage {
        let staged = self.lock();
        let start = match &range.after {
            Some(cursor) => Bound::Excluded(cursor.position().clone()),
            None => Bound::Included(range.start.clone()),
        };
        // Past the last row of an unfinished page the store's rows are not known yet.
        let end = match &page.next {
            Some(cursor) => Bound::Included(cursor.position().clone()),
            None => Bound::Excluded(range.end.clone()),
        };
        let mut rows: OrderedMap<Key, Value> = page.rows.into_iter().collect();
        for (key, value) in staged.range((start, end)) {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        let mut rows: Vec<(Key, Value)> = rows.into_iter().collect();
        let mut next = page.next;
        if rows.len() > range.limit {
            rows.truncate(range.limit);
            next = rows.last().map(|(key, _)| Cursor::behind(key.clone()));
        }
        ScanPage { rows, next }
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ReadStore for Overlay {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move {
            self.check(partition)?;
            if let Some(staged) = self.lock().get(key)
                && !planted(Mutant::GroupReadsPastStaged)
            {
                return Ok(staged.clone());
            }
            self.read(self.store.get(partition, key)).await
        })
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            self.check(partition)?;
            let mut values = self.read(self.store.get_many(partition, keys)).await?;
            let staged = self.lock();
            for (key, value) in keys.iter().zip(&mut values) {
                if let Some(newer) = staged.get(key) {
                    value.clone_from(newer);
                }
            }
            Ok(values)
        })
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            self.check(partition)?;
            let page = self.read(self.store.scan(partition, range)).await?;
            if range.start >= range.end || self.is_empty() {
                return Ok(page);
            }
            Ok(self.merge(range, page))
        })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            self.check(partition)?;
            validate_ranges(ranges)?;
            let pages = self.read(self.store.scan_many(partition, ranges)).await?;
            if self.is_empty() {
                return Ok(pages);
            }
            Ok(ranges
                .iter()
                .zip(pages)
                .map(|(range, page)| {
                    if range.start < range.end {
                        self.merge(range, page)
                    } else {
                        page
                    }
                })
                .collect())
        })
    }
}

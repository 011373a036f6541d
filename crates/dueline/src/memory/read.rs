use super::MemoryStore;
use crate::future::BoxFuture;
use crate::store::{
    Key, Partition, ReadStore, ScanPage, ScanRange, StoreError, Value, validate_key,
    validate_ranges,
};

impl ReadStore for MemoryStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move {
            validate_key(key)?;
            Ok(self.lock().get(partition, key).cloned())
        })
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            keys.iter().try_for_each(validate_key)?;
            let state = self.lock();
            Ok(keys
                .iter()
                .map(|key| state.get(partition, key).cloned())
                .collect())
        })
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            validate_ranges(std::slice::from_ref(range))?;
            #[cfg(dueline_mutants)]
            self.lock().note_heads(partition);
            Ok(self.lock().scan(partition, range))
        })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            validate_ranges(ranges)?;
            #[cfg(dueline_mutants)]
            self.lock().note_heads(partition);
            let state = self.lock();
            Ok(ranges
                .iter()
                .map(|range| state.scan(partition, range))
                .collect())
        })
    }
}

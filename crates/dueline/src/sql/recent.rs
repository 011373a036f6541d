use crate::ordered::OrderedMap;
use std::mem;
use std::ops::RangeInclusive;

/// A bounded map that forgets what was not used lately: two generations; when the young one is
/// full it becomes the old one, and what was old is forgotten. Holds at most twice its capacity.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    young: OrderedMap<K, V>,
    old: OrderedMap<K, V>,
    capacity: usize,
}

impl<K: Ord + Clone, V: Copy> Recent<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            young: OrderedMap::new(),
            old: OrderedMap::new(),
            capacity,
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value);
        Some(value)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.capacity && !self.young.contains_key(&key) {
            self.old = mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// What is known in this range of keys, in no particular order.
    pub(super) fn range(&self, range: RangeInclusive<K>) -> impl Iterator<Item = (&K, V)> {
        self.young
            .range(range.clone())
            .chain(self.old.range(range))
            .map(|(key, value)| (key, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.insert(1, 'a');
        recent.insert(2, 'b');
        recent.insert(3, 'c');
        assert_eq!(recent.get(&1), Some('a'));
        recent.insert(4, 'd');
        assert_eq!(recent.get(&2), None);
        assert_eq!(recent.get(&1), Some('a'));
        recent.remove(&1);
        assert_eq!(recent.get(&1), None);
        let known: Vec<_> = recent.range(0..=9).map(|(key, _)| *key).collect();
        assert_eq!(known, [4, 3]);
    }
}

use std::cmp::Ordering;
use std::fmt;
use std::mem;
use std::ops::{Bound, RangeBounds};

/// Sorts, stably, by insertion.
pub fn sort_by_insertion<T>(items: &mut [T], mut order: impl FnMut(&T, &T) -> Ordering) {
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && order_of(items, place, &mut order) == Ordering::Greater {
            items.swap(place - 1, place);
            place -= 1;
        }
    }
}

/// How the item before a place stands to the one at it.
fn order_of<T>(items: &[T], place: usize, order: &mut impl FnMut(&T, &T) -> Ordering) -> Ordering {
    match items.get(place.saturating_sub(1)..=place) {
        Some([before, item]) => order(before, item),
        _ => Ordering::Equal,
    }
}

/// A map in a vector in the order of its keys, with the methods of `BTreeMap` that are used here.
/// Looking up is a binary search; an insert moves what lies behind it.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K: Ord, V> SortedMap<K, V> {
    /// A map without entries.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Where a key lies, or where it belongs.
    fn place(&self, key: &K) -> Result<usize, usize> {
        match self.entries.last() {
            // Filled in order, mostly.
            Some((last, _)) if last < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|(known, _)| known.cmp(key)),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.place(key).ok()?;
        self.entries.get(place).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Whether the key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    /// Gives a key a value; returns the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => {
                let (_, known) = self.entries.get_mut(place)?;
                Some(mem::replace(known, value))
            }
            Err(place) => {
                self.entries.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes a key out; returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Takes a key out; returns it with its value.
    pub fn remove_entry(&mut self, key: &K) -> Option<(K, V)> {
        let place = self.place(key).ok()?;
        Some(self.entries.remove(place))
    }

    /// The place of a key, to be filled if it is empty.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        Entry { map: self, key }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes every key out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Keeps the entries for which this is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// The entries, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The values in the order of their keys, and the map is gone.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// The entries of a range of keys, ascending; none if it is inverted.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let below = |key: &K| match range.start_bound() {
            Bound::Included(start) => key < start,
            Bound::Excluded(start) => key <= start,
            Bound::Unbounded => false,
        };
        let within = |key: &K| match range.end_bound() {
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
            Bound::Unbounded => true,
        };
        let start = self.entries.partition_point(|(key, _)| below(key));
        let end = self.entries.partition_point(|(key, _)| within(key));
        let found = self.entries.get(start..end).unwrap_or_default();
        found.iter().map(|(key, value)| (key, value))
    }
}

/// The place of a key in a [`SortedMap`].
#[derive(Debug)]
pub struct Entry<'m, K, V> {
    map: &'m mut SortedMap<K, V>,
    key: K,
}

impl<'m, K: Ord, V> Entry<'m, K, V> {
    /// The value, put there if there was none.
    pub fn or_insert(self, value: V) -> &'m mut V {
        self.or_insert_with(|| value)
    }

    /// The value, made if there was none.
    #[allow(
        clippy::expect_used,
        reason = "the entry was found or has just been put there"
    )]
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'m mut V {
        let Self { map, key } = self;
        let place = match map.place(&key) {
            Ok(place) => place,
            Err(place) => {
                map.entries.insert(place, (key, make()));
                place
            }
        };
        let entry = map.entries.get_mut(place);
        &mut entry
            .expect("the entry was found or has just been put there")
            .1
    }

    /// The value, the default one if there was none.
    pub fn or_default(self) -> &'m mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

impl<K: Ord, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.iter().map(|(key, value)| (key, value));
        f.debug_map().entries(entries).finish()
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

type EntryRef<'m, K, V> = (&'m K, &'m V);

impl<'m, K, V> IntoIterator for &'m SortedMap<K, V> {
    type Item = EntryRef<'m, K, V>;
    type IntoIter =
        std::iter::Map<std::slice::Iter<'m, (K, V)>, fn(&'m (K, V)) -> EntryRef<'m, K, V>>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter().map(|(key, value)| (key, value))
    }
}

impl<'m, K, V> IntoIterator for &'m mut SortedMap<K, V> {
    type Item = (&'m K, &'m mut V);
    type IntoIter =
        std::iter::Map<std::slice::IterMut<'m, (K, V)>, fn(&'m mut (K, V)) -> (&'m K, &'m mut V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }
}

/// A set in a vector in the order of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<K>(SortedMap<K, ()>)
where
    K: Ord;

impl<K: Ord> SortedSet<K> {
    /// A set without members.
    pub const fn new() -> Self {
        Self(SortedMap::new())
    }

    /// Whether this is a member.
    pub fn contains(&self, member: &K) -> bool {
        self.0.contains_key(member)
    }

    /// Adds a member; whether it was none.
    pub fn insert(&mut self, member: K) -> bool {
        self.0.insert(member, ()).is_none()
    }

    /// Takes a member out; whether it was one.
    pub fn remove(&mut self, member: &K) -> bool {
        self.0.remove(member).is_some()
    }

    /// Takes every member out.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Ord> Default for SortedSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, members: I) {
        self.0
            .extend(members.into_iter().map(|member| (member, ())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, u16),
        Remove(u8),
        Change(u8),
        Retain(u8),
        Range(u8, u8),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..32u8, any::<u16>()).prop_map(|(key, value)| Step::Insert(key, value)),
            4 => (0..32u8).prop_map(Step::Remove),
            4 => (0..32u8).prop_map(Step::Change),
            1 => (1..4u8).prop_map(Step::Retain),
            2 => (0..32u8, 0..32u8).prop_map(|(one, other)| Step::Range(one.min(other), one.max(other))),
            1 => Just(Step::Clear),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn a_sorted_map_answers_as_the_standard_librarys(steps in steps()) {
            let mut sorted = SortedMap::new();
            let mut model = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        prop_assert_eq!(sorted.insert(key, value), model.insert(key, value));
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(sorted.contains_key(&key), model.contains_key(&key));
                        prop_assert_eq!(sorted.remove_entry(&key), model.remove_entry(&key));
                    }
                    Step::Change(key) => {
                        *sorted.entry(key).or_default() ^= 1;
                        *model.entry(key).or_default() ^= 1;
                        prop_assert_eq!(sorted.get_mut(&key), model.get_mut(&key));
                    }
                    Step::Retain(modulus) => {
                        sorted.retain(|key, _| key % modulus == 0);
                        model.retain(|key, _| key % modulus == 0);
                    }
                    Step::Range(start, end) => {
                        let half_open: Vec<_> = sorted.range(start..end).collect();
                        prop_assert_eq!(half_open, model.range(start..end).collect::<Vec<_>>());
                        let to_end: Vec<_> = sorted.range(..=end).collect();
                        prop_assert_eq!(to_end, model.range(..=end).collect::<Vec<_>>());
                        let behind = (Bound::Excluded(start), Bound::Unbounded);
                        let from: Vec<_> = sorted.range(behind).collect();
                        prop_assert_eq!(from, model.range(behind).collect::<Vec<_>>());
                        prop_assert_eq!(sorted.get(&start), model.get(&start));
                    }
                    Step::Clear => {
                        sorted.clear();
                        model.clear();
                    }
                }
                prop_assert!(sorted.iter().eq(model.iter()));
                prop_assert!(sorted.keys().eq(model.keys()) && sorted.values().eq(model.values()));
                prop_assert_eq!((sorted.len(), sorted.is_empty()), (model.len(), model.is_empty()));
            }
            let collected: SortedMap<u8, u16> = model.clone().into_iter().rev().collect();
            prop_assert_eq!(&collected, &sorted);
            prop_assert!(sorted.into_values().eq(model.into_values()));
        }
    }

    proptest! {
        #[test]
        fn sorting_by_insertion_is_stable(items in prop::collection::vec((0..8u8, any::<u8>()), 0..40)) {
            let mut sorted = items.clone();
            sort_by_insertion(&mut sorted, |one, other| one.0.cmp(&other.0));
            let mut model = items;
            model.sort_by_key(|item| item.0);
            prop_assert_eq!(sorted, model);
        }
    }

    #[test]
    fn an_inverted_range_is_empty_and_a_set_holds_each_member_once() {
        let map: SortedMap<u8, ()> = [(1, ()), (5, ())].into_iter().collect();
        assert_eq!(
            map.range((Bound::Included(9), Bound::Excluded(2))).count(),
            0
        );
        let mut set = SortedSet::new();
        set.extend([3, 1, 3]);
        assert!(!set.insert(1) && set.insert(2) && set.contains(&2));
        assert!(set.remove(&3) && !set.remove(&3));
        set.clear();
        assert_eq!(set, SortedSet::default());
    }
}

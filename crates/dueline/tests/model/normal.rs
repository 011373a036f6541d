//! The rows of a partition with generations replaced by their rank, so that two runs that draw
//! different ones can be compared.

use std::collections::{BTreeMap, BTreeSet};

use dueline::rows::{DeadKey, NameKey, NameRow, TimerKey};
use dueline::store::{Key, Value};

/// Where the generation lies in the keys of effects and cuts, behind the prefix and the kind.
const MARKERS: [&[u8]; 2] = [b"fx/", b"cut/"];

fn marker_at(key: &Key) -> Option<usize> {
    MARKERS
        .iter()
        .find(|prefix| key.starts_with(prefix))
        .map(|prefix| prefix.len() + 1)
}

fn generation_of(key: &Key, value: &Value) -> Option<u64> {
    if let Ok(key) = TimerKey::decode(key) {
        return Some(key.generation);
    }
    if let Ok(key) = DeadKey::decode(key) {
        return Some(key.generation);
    }
    if NameKey::decode(key).is_ok() {
        return NameRow::decode(value).ok().map(|row| row.generation);
    }
    let at = marker_at(key)?;
    key.get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_be_bytes)
}

fn ranked(key: &Key, value: &Value, rank: impl Fn(u64) -> u64) -> (Key, Value) {
    if let Ok(mut found) = TimerKey::decode(key) {
        found.generation = rank(found.generation);
        return (found.encode(), value.clone());
    }
    if let Ok(mut found) = DeadKey::decode(key) {
        found.generation = rank(found.generation);
        return (found.encode(), value.clone());
    }
    if NameKey::decode(key).is_ok()
        && let Ok(mut row) = NameRow::decode(value)
    {
        row.generation = rank(row.generation);
        return (key.clone(), row.encode());
    }
    match (marker_at(key), generation_of(key, value)) {
        (Some(at), Some(generation)) => {
            let mut bytes = key.to_vec();
            bytes[at..at + 8].copy_from_slice(&rank(generation).to_be_bytes());
            (bytes.into(), value.clone())
        }
        _ => (key.clone(), value.clone()),
    }
}

/// The rows with each generation replaced by its place among all of them.
pub fn normal(rows: &[(Key, Value)]) -> Vec<(Key, Value)> {
    let all: BTreeSet<u64> = rows
        .iter()
        .filter_map(|(key, value)| generation_of(key, value))
        .collect();
    let ranks: BTreeMap<u64, u64> = all.into_iter().zip(0..).collect();
    let mut rows: Vec<(Key, Value)> = rows
        .iter()
        .map(|(key, value)| ranked(key, value, |generation| ranks[&generation]))
        .collect();
    rows.sort();
    rows
}

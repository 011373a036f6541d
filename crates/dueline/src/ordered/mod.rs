//! Ordered maps and sets, and sorting: those of the standard library, and on `wasm32` sorted vectors.
//!
//! Each pair of types costs the standard library's tree some 6 KiB of code, and a module is loaded at every
//! cold start of an object; there the maps are small, and mostly filled in order.

#[cfg(not(target_arch = "wasm32"))]
use std::cmp::Ordering;

#[cfg(any(test, target_arch = "wasm32"))]
#[cfg_attr(
    not(target_arch = "wasm32"),
    allow(
        unreachable_pub,
        reason = "public where it is used, and elsewhere only tested"
    )
)]
mod sorted;

#[cfg(target_arch = "wasm32")]
pub use sorted::{SortedMap as OrderedMap, SortedSet as OrderedSet};
#[cfg(not(target_arch = "wasm32"))]
pub use std::collections::{BTreeMap as OrderedMap, BTreeSet as OrderedSet};

/// Sorts, stably. On `wasm32` by insertion: a few hundred items are the most that is sorted there.
#[cfg(not(target_arch = "wasm32"))]
pub fn sort_by<T>(items: &mut [T], order: impl FnMut(&T, &T) -> Ordering) {
    items.sort_by(order);
}

#[cfg(target_arch = "wasm32")]
pub use sorted::sort_by_insertion as sort_by;

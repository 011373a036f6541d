//! The walk over the dependencies of one record.

use std::time::Duration;

use super::gate::{Dependency, Gate, RemoteAllowance};
use crate::mutants::{Mutant, planted};
use crate::runtime::Runtime;
use crate::store::{Key, Partition, Precondition, ReadStore, StoreError};

/// Most keys of one remote read.
pub const REMOTE_PAGE_KEYS: usize = 8;
/// Most remote reads of one fire.
pub const REMOTE_READS_MAX: usize = 128;
/// Most keys of one local read.
pub const LOCAL_PAGE_KEYS: usize = 256;
/// How long a fire reads remotely, in milliseconds: half of its deadline, so that what it has seen is
/// kept.
pub(super) const WALK_MS: u64 = 15_000;

/// Where a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// At a dependency that is not visible.
    Missing,
    /// This fire has read enough.
    Budget,
    /// The shared allowance is used up.
    Allowance,
    /// A read failed, after others had not.
    Failed,
    /// At the end.
    Complete,
}

/// Walks over remote dependencies.
pub(super) struct RemoteWalk<'a> {
    pub(super) gate: &'a dyn Gate,
    pub(super) reads: &'a dyn ReadStore,
    pub(super) runtime: &'a Runtime,
    pub(super) allowance: Option<&'a dyn RemoteAllowance>,
    pub(super) remote: &'a [Dependency],
}

impl RemoteWalk<'_> {
    /// Goes on from a position to the first dependency that is not visible, and says where it stopped.
    ///
    /// # Errors
    /// What the store says to the first read; later ones only stop the walk.
    pub(super) async fn go_on(&self, from: usize) -> Result<(usize, Stop), StoreError> {
        let began = self.runtime.monotonic();
        let mut position = from;
        for reads in 0..=REMOTE_READS_MAX {
            let rest = self.remote.get(position..).unwrap_or_default();
            let page = page_of(rest);
            let Some(first) = page.first() else {
                return Ok((position, Stop::Complete));
            };
            let elapsed = self.runtime.monotonic().saturating_sub(began);
            if reads == REMOTE_READS_MAX || elapsed >= Duration::from_millis(WALK_MS) {
                return Ok((position, Stop::Budget));
            }
            if self.allowance.is_some_and(|allowance| !allowance.take()) {
                return Ok((position, Stop::Allowance));
            }
            let keys: Vec<Key> = page.iter().map(|of| of.key.clone()).collect();
            let found = match self.reads.get_many(&first.partition, &keys).await {
                Ok(found) => found,
                Err(error) if reads == 0 => return Err(error),
                Err(error) => {
                    tracing::warn!(partition = %first.partition, %error, "a recheck stops early");
                    return Ok((position, Stop::Failed));
                }
            };
            let rows = page.iter().zip(&found);
            let visible = rows
                .take_while(|(of, row)| self.gate.is_visible(of, row.as_ref()))
                .count();
            if planted(Mutant::RecheckSkipsMissing) && visible > 0 {
                position += page.len();
                continue;
            }
            position += visible;
            if visible < page.len() {
                return Ok((position, Stop::Missing));
            }
        }
        Ok((position, Stop::Budget))
    }
}

/// The first of them that one read can fetch: those of one partition, at most eight.
fn page_of(rest: &[Dependency]) -> &[Dependency] {
    let Some(first) = rest.first() else {
        return rest;
    };
    let same = rest.iter().take(REMOTE_PAGE_KEYS);
    let len = same
        .take_while(|of| of.partition == first.partition)
        .count();
    rest.get(..len).unwrap_or_default()
}

/// Local dependencies as they were read, all of them visible.
#[derive(Debug, Default)]
pub(super) struct LocalSeen {
    pub(super) guards: Vec<Precondition>,
    pub(super) bytes: usize,
}

/// Looks at the local dependencies; `None` if one is not visible.
pub(super) async fn look_at_local(
    gate: &dyn Gate,
    reads: &dyn ReadStore,
    partition: &Partition,
    local: &[Dependency],
) -> Result<Option<LocalSeen>, StoreError> {
    let mut seen = LocalSeen::default();
    for page in local.chunks(LOCAL_PAGE_KEYS) {
        let keys: Vec<Key> = page.iter().map(|of| of.key.clone()).collect();
        let mut found = reads.get_many(partition, &keys).await?.into_iter();
        for of in page {
            let row = found.next().flatten();
            if !gate.is_visible(of, row.as_ref()) {
                return Ok(None);
            }
            seen.bytes += of.key.len() + row.as_ref().map_or(0, |row| row.len());
            seen.guards.push(match row {
                Some(row) => Precondition::Equals(of.key.clone(), row),
                None => Precondition::Absent(of.key.clone()),
            });
        }
    }
    Ok(Some(seen))
}

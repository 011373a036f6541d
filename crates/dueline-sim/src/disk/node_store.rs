use std::fmt;
use std::sync::Arc;

use dueline::BoxFuture;
use dueline::rows::is_reserved;
use dueline::store::{
    AuditPage, Batch, BatchOutcome, Capabilities, Cursor, Group, GroupOutcome, Key, NamespaceStore,
    Partition, PartitionPage, PartitionStats, ReadStore, ScanPage, ScanRange, StoreError,
    StoreErrorKind, Value, WakeCursor, WakePage, WakeStore, Write,
};
use dueline::timers::KindSet;
use dueline_history::What;

use super::fate::Fate;
use super::{Disk, Flight, Origin, give_way, injected, octets};
use crate::recorder::Actor;
use crate::tag::Tag;

/// The store as one life of a node sees it.
pub struct NodeStore {
    disk: Arc<Disk>,
    actor: Actor,
    node: u16,
    epoch: u64,
    is_shared: bool,
    unclean_opened_at_ms: Option<u64>,
}

/// A commit under way: dropped half-way it is left to chance.
struct Submitted<'a> {
    disk: &'a Disk,
    number: u64,
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        self.disk.abandon(self.number);
    }
}

impl NodeStore {
    /// The store for a life of a node; after an unclean end of the last one with the time of this
    /// opening.
    pub fn new(
        disk: &Arc<Disk>,
        actor: &Actor,
        (node, epoch): (u16, u64),
        is_shared: bool,
        unclean_opened_at_ms: Option<u64>,
    ) -> Arc<Self> {
        Arc::new(Self {
            disk: Arc::clone(disk),
            actor: actor.clone(),
            node,
            epoch,
            is_shared,
            unclean_opened_at_ms,
        })
    }

    fn origin(&self) -> Origin {
        Origin {
            actor: self.actor.clone(),
            node: self.node,
            epoch: self.epoch,
            tag: Tag::current(),
            late: false,
            asked_ms: self.disk.time.now_ms(),
        }
    }

    /// What comes before every call: time passes, and a commit in doubt is settled.
    async fn before(&self) -> Result<(), StoreError> {
        let delay_us = {
            let mut state = self.disk.state();
            let faults = state.faults;
            faults.delay_us(&mut state.random)
        };
        if delay_us > 0 {
            self.disk.time.sleep_us(delay_us).await;
        } else {
            give_way().await;
        }
        self.disk.gate()
    }

    /// What comes before a read.
    async fn before_read(&self) -> Result<(), StoreError> {
        self.before().await?;
        let fails = {
            let mut state = self.disk.state();
            let rate = state.faults.unavailable;
            state.random.below(1_000) < rate
        };
        if fails {
            self.disk.recorder.mark("a read fails");
            return Err(injected(StoreErrorKind::Unavailable));
        }
        Ok(())
    }

    fn shorten(&self, mut page: ScanPage) -> ScanPage {
        let served = {
            let mut state = self.disk.state();
            let rate = state.faults.short_page;
            if page.rows.len() < 2 || state.random.below(1_000) >= rate {
                return page;
            }
            let most = page.rows.len() as u64 - 1;
            1 + usize::try_from(state.random.below(most)).unwrap_or(0)
        };
        self.disk.recorder.mark("a page is short");
        page.rows.truncate(served);
        page.next = page.rows.last().map(|(key, _)| Cursor::behind(key.clone()));
        page
    }

    async fn commit(&self, partition: &Partition, group: Group) -> GroupOutcome {
        // As it stands when the call begins: what is left of a cut call is another task's.
        let origin = self.origin();
        if let Err(error) = self.before().await {
            return GroupOutcome::stopped(error);
        }
        let (fate, spared) = {
            let mut state = self.disk.state();
            let faults = state.faults;
            let fate = faults.fate(&mut state.random);
            let most = group.batches.len() as u64;
            (fate, usize::try_from(state.random.below(most)).unwrap_or(0))
        };
        let (fate, spared) = self.without_room(&origin, &group).unwrap_or((fate, spared));
        let done = match fate {
            Fate::Done => self.commit_in_flight(origin, partition, group).await,
            fate => self.commit_with(fate, spared, origin, partition, group),
        };
        give_way().await;
        done
    }

    /// The first batch for which a full store has no room.
    fn without_room(&self, origin: &Origin, group: &Group) -> Option<(Fate, usize)> {
        if !self.disk.state().is_full {
            return None;
        }
        let finds_none = |batch: &Batch| batch.has_put() && !batch.uses_reserve;
        let spared = group.batches.iter().position(finds_none)?;
        let batch = group.batches.get(spared)?;
        let is_own = |write: &Write| is_reserved(write.key());
        // The effects of a built-in kind are reserved rows too, and have no right to the reserve.
        let is_scripted = !self.disk.is_watched();
        if is_scripted && !matches!(origin.tag, Tag::Request(_)) && batch.writes.iter().all(is_own)
        {
            self.disk
                .recorder
                .wrong("a move of the engine found no room, and may use the reserve");
        }
        Some((Fate::Full, spared))
    }

    async fn commit_in_flight(
        &self,
        origin: Origin,
        partition: &Partition,
        group: Group,
    ) -> GroupOutcome {
        let flight = Flight {
            origin,
            partition: partition.clone(),
            group,
        };
        let submitted = Submitted {
            disk: &self.disk,
            number: self.disk.submit(flight),
        };
        give_way().await;
        // A commit that failed meanwhile is settled before this one is done.
        if let Err(error) = self.disk.gate() {
            drop(self.disk.take_flight(submitted.number));
            return GroupOutcome::stopped(error);
        }
        match self.disk.take_flight(submitted.number) {
            Some(flight) => self
                .disk
                .commit_now(&flight.origin, &flight.partition, flight.group),
            None => GroupOutcome::stopped(injected(StoreErrorKind::Unknown)),
        }
    }

    /// The batches before the one that is hit commit, and the fate befalls the rest.
    fn commit_with(
        &self,
        fate: Fate,
        spared: usize,
        origin: Origin,
        partition: &Partition,
        mut group: Group,
    ) -> GroupOutcome {
        let rest = Group {
            batches: group.batches.split_off(spared),
            settles: std::mem::take(&mut group.settles),
        };
        let mut done = if group.batches.is_empty() {
            GroupOutcome::default()
        } else {
            self.disk.commit_now(&origin, partition, group)
        };
        if done.committed() < spared {
            // An earlier batch lost: the group ended before this could befall it.
            let settles = Group {
                batches: Vec::new(),
                settles: rest.settles,
            };
            let settled = self.disk.commit_now(&origin, partition, settles);
            done.next_wakes_ms = settled.next_wakes_ms;
            return done;
        }
        let flight = Flight {
            origin,
            partition: partition.clone(),
            group: rest,
        };
        let disk = &self.disk;
        let (mark, kind) = match fate {
            Fate::Done | Fate::Unavailable => ("a commit is refused", StoreErrorKind::Unavailable),
            Fate::Full => ("the store is full", StoreErrorKind::Full),
            Fate::UnknownNotWritten => ("a commit is lost", StoreErrorKind::Unknown),
            Fate::UnknownWritten => {
                let _unheard = disk.commit_now(&flight.origin, &flight.partition, flight.group);
                ("the answer of a commit is lost", StoreErrorKind::Unknown)
            }
            Fate::UnknownLate => {
                disk.state().late.push(flight);
                ("a commit is late", StoreErrorKind::Unknown)
            }
            Fate::IoError => {
                let fault = What::Fault {
                    fault: "commit_unknown".into(),
                    node: Some(flight.origin.node),
                    partition: Some(octets(partition.as_bytes())),
                };
                disk.recorder.event(&flight.origin.actor, fault);
                disk.state().doubt = Some(flight);
                ("a commit ends in an I/O error", StoreErrorKind::Unknown)
            }
        };
        disk.recorder.mark(mark);
        done.stopped_by = Some(injected(kind));
        done.next_wakes_ms = Vec::new();
        done
    }
}

impl ReadStore for NodeStore {
    fn get<'a>(
        &'a self,
        partition: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move {
            self.before_read().await?;
            self.disk.memory.get(partition, key).await
        })
    }

    fn get_many<'a>(
        &'a self,
        partition: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            self.before_read().await?;
            self.disk.memory.get_many(partition, keys).await
        })
    }

    fn scan<'a>(
        &'a self,
        partition: &'a Partition,
        range: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async move {
            self.before_read().await?;
            let page = self.disk.memory.scan(partition, range).await?;
            Ok(self.shorten(page))
        })
    }

    fn scan_many<'a>(
        &'a self,
        partition: &'a Partition,
        ranges: &'a [ScanRange],
    ) -> BoxFuture<'a, Result<Vec<ScanPage>, StoreError>> {
        Box::pin(async move {
            self.before_read().await?;
            let pages = self.disk.memory.scan_many(partition, ranges).await?;
            Ok(pages.into_iter().map(|page| self.shorten(page)).collect())
        })
    }
}

impl NamespaceStore for NodeStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            shared: self.is_shared,
            ..self.disk.memory.capabilities()
        }
    }

    fn apply<'a>(
        &'a self,
        partition: &'a Partition,
        batch: Batch,
    ) -> BoxFuture<'a, Result<BatchOutcome, StoreError>> {
        Box::pin(async move {
            let done = self.commit(partition, Group::from(vec![batch])).await;
            match (done.outcomes.into_iter().next(), done.stopped_by) {
                (_, Some(error)) => Err(error),
                (Some(outcome), None) => Ok(outcome),
                (None, None) => Err(StoreError::corrupt("no outcome")),
            }
        })
    }

    fn apply_all<'a>(
        &'a self,
        partition: &'a Partition,
        group: Group,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(self.commit(partition, group))
    }

    fn stats<'a>(
        &'a self,
        partition: &'a Partition,
    ) -> BoxFuture<'a, Result<PartitionStats, StoreError>> {
        self.disk.memory.stats(partition)
    }

    fn probe(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.disk.memory.probe()
    }
}

impl WakeStore for NodeStore {
    fn due_wakes<'a>(
        &'a self,
        kinds: &'a KindSet,
        until_ms: u64,
        after: Option<&'a WakeCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<WakePage, StoreError>> {
        Box::pin(async move {
            self.before_read().await?;
            self.disk
                .memory
                .due_wakes(kinds, until_ms, after, limit)
                .await
        })
    }

    fn partitions<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<PartitionPage, StoreError>> {
        self.disk.memory.partitions(after, limit)
    }

    fn audit_wakes<'a>(
        &'a self,
        after: Option<&'a Partition>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, StoreError>> {
        self.disk.memory.audit_wakes(after, limit)
    }

    fn unclean_opened_at_ms(&self) -> Option<u64> {
        self.unclean_opened_at_ms
    }
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeStore")
            .field("node", &self.node)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

//! The turn of a write: the alarm first, then the commit.

use dueline::BoxFuture;
use dueline::sql::{Finished, MemoryChange, SqlConn, Transaction, Writer, purge_orphans, schema};
use dueline::store::{
    AuditPage, Batch, Group, GroupOutcome, Partition, StoreError, StoreErrorKind,
};
use dueline::timers::earliest_timer_put;

use super::ObjectStore;
use super::effects::take_marks;
use super::state::State;
use crate::mutants::{Mutant, planted};
use crate::storage::AlarmWrite;
use crate::yielding::give_way;

/// Most wakes without a partition that are kept to be removed.
const ORPHANS_MAX: usize = 1_024;

/// What a turn wrote.
struct Written {
    done: GroupOutcome,
    /// The rest of the write of the alarm, if it needed one.
    alarm: Option<AlarmWrite>,
    /// The wait until all of it is durable, if it has to be.
    sync: Option<AlarmWrite>,
    /// Whether a new wake relies on an alarm that is only remembered: what set it may have been taken back with a
    /// transaction of the application.
    is_alarm_assumed: bool,
}

impl Written {
    fn nothing(done: GroupOutcome) -> Self {
        Self {
            done,
            alarm: None,
            sync: None,
            is_alarm_assumed: false,
        }
    }
}

/// What commits of a group one of whose batches does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stays {
    /// The batches before it: the contract of a store.
    Front,
    Nothing,
}

impl State {
    pub(super) fn note_orphans(&mut self, orphans: Vec<dueline::sql::OrphanWake>) {
        let room = ORPHANS_MAX.saturating_sub(self.orphans.len());
        for orphan in orphans.into_iter().take(room) {
            if !self.orphans.contains(&orphan) {
                self.orphans.push(orphan);
            }
        }
    }
}

impl ObjectStore {
    /// Commits batches of one partition in their order as
    /// [`apply_all`](dueline::store::NamespaceStore::apply_all), but all of them or none: where one does not
    /// commit, only why comes back. A guard that was lost is `Unavailable`: read again, then plan again.
    pub fn apply_whole<'a>(
        &'a self,
        partition: &'a Partition,
        batches: Vec<Batch>,
    ) -> BoxFuture<'a, GroupOutcome> {
        Box::pin(self.write(partition, Group::from(batches), Stays::Nothing))
    }

    /// Commits a group; if it makes something due before the alarm, the alarm is set before, in the
    /// same turn.
    pub(super) async fn write(
        &self,
        partition: &Partition,
        mut group: Group,
        stays: Stays,
    ) -> GroupOutcome {
        if planted(Mutant::AlarmSetLate) {
            return self.write_with_late_alarm(partition, group, stays).await;
        }
        let marks = take_marks(&mut group);
        let Written {
            done,
            alarm,
            sync,
            is_alarm_assumed,
        } = self.write_turn(partition, &group, &marks, stays);
        let mut done = self.confirmed(done, alarm).await;
        if is_alarm_assumed && let Err(error) = self.see_to_alarm().await {
            done = alarm_in_doubt(error);
        }
        if let Some(sync) = sync
            && let Err(error) = sync.await
        {
            let unknown =
                StoreError::unknown("the platform could not say that a commit is durable");
            return GroupOutcome::stopped(unknown.with_source(error));
        }
        done
    }

    fn write_turn(
        &self,
        partition: &Partition,
        group: &Group,
        effects: &[Vec<u64>],
        stays: Stays,
    ) -> Written {
        let mut state = self.lock();
        let earliest_ms = earliest_of(group);
        let alarm = match earliest_ms {
            Some(due_ms) => match self.lower(&mut state, due_ms) {
                Ok(alarm) => alarm,
                Err(error) => return Written::nothing(GroupOutcome::stopped(not_armed(error))),
            },
            None => None,
        };
        // A handler that set another alarm is not retried by the platform when it is cut: the mark
        // takes over what the retry would have said. An earlier one may have been taken back.
        let marks = alarm.is_some() && state.is_serving;
        let done = self.commit(&mut state, partition, group, effects, marks, stays);
        if let Some(due_ms) = earliest_ms {
            state.note_put(due_ms);
            // The store takes timers of this partition again. Those of a tick's own say nothing yet: how it
            // ends is told when it has.
            if done.committed() > 0 && !state.is_serving {
                state.holds.end(partition);
            }
        }
        // A cautious claim is counted before its handler runs; in memory alone it would go with the
        // process that the handler takes down.
        let sync = state.is_cautious && done.committed() > 0;
        // Where the wake was there already, so was its alarm. Who serves one looks at its end.
        let is_alarm_assumed = earliest_ms.is_some()
            && alarm.is_none()
            && done.committed() > 0
            && state.has_changed_wakes
            && !state.is_serving
            && !planted(Mutant::AlarmAssumedByVerbs);
        Written {
            done,
            alarm,
            sync: sync.then(|| self.storage.sync()),
            is_alarm_assumed,
        }
    }

    /// A group in one transaction, with the effects of its batches.
    pub(super) fn commit(
        &self,
        state: &mut State,
        partition: &Partition,
        group: &Group,
        effects: &[Vec<u64>],
        marks: bool,
        stays: Stays,
    ) -> GroupOutcome {
        let done = self.commit_as_remembered(state, partition, group, effects, marks, stays);
        if !state.writer.was_wrong() {
            return done;
        }
        self.commit_as_remembered(state, partition, group, effects, marks, stays)
    }

    fn commit_as_remembered(
        &self,
        state: &mut State,
        partition: &Partition,
        group: &Group,
        effects: &[Vec<u64>],
        marks: bool,
        stays: Stays,
    ) -> GroupOutcome {
        let mut failed = None;
        let done = self.transact(state, |conn, writer| {
            if marks {
                schema::set_unclean_mark(conn, true)?;
            }
            let mut transaction = Transaction::new(conn, writer);
            transaction.run_with(partition, group, &mut |index| {
                let Err(effect) = self.do_effects(conn, effects, index) else {
                    return Ok(());
                };
                let error = effect.error.clone();
                failed = Some(effect);
                Err(error)
            })?;
            let Finished { outcomes, memory } = transaction.finish()?;
            let outcome = outcomes.into_iter().next().unwrap_or_default();
            let is_cut = outcome.committed() < group.batches.len();
            if is_cut && stays == Stays::Nothing && !planted(Mutant::WholeKeepsItsFront) {
                return Err(outcome.stopped_by.unwrap_or_else(guard_lost));
            }
            Ok((outcome, memory))
        });
        if let Some(failed) = failed
            && stays == Stays::Front
        {
            return self.commit_before(state, partition, group.clone(), effects, failed);
        }
        match done {
            Ok(outcome) => {
                state.is_marked |= marks;
                let committed = group.batches.get(..outcome.committed());
                self.storage
                    .committed(partition, committed.unwrap_or_default());
                outcome
            }
            Err(error) if error.kind() == StoreErrorKind::Full && !has_put(group) => {
                // The contract: what only deletes is never full.
                let error = StoreError::unavailable("no room even to delete").with_source(error);
                GroupOutcome::stopped(error)
            }
            Err(error) => GroupOutcome::stopped(error),
        }
    }

    /// A transaction of the object, and what the writer remembers of it once it has committed.
    fn transact<T>(
        &self,
        state: &mut State,
        inside: impl FnOnce(&dyn SqlConn, &mut Writer) -> Result<(T, MemoryChange), StoreError>,
    ) -> Result<T, StoreError> {
        let mut inside = Some(inside);
        let mut done = None;
        let writer = &mut state.writer;
        let orphans = &state.orphans;
        self.storage.transaction(&mut |conn| {
            let Some(inside) = inside.take() else {
                return Ok(());
            };
            purge_orphans(conn, orphans)?;
            done = Some(inside(conn, writer)?);
            Ok(())
        })?;
        let Some((done, memory)) = done else {
            return Err(StoreError::unavailable("the storage ran no transaction"));
        };
        state.has_changed_wakes = memory.changes_wakes();
        state.writer.committed(memory);
        state.orphans.clear();
        Ok(done)
    }

    /// What a commit comes to once the platform has taken the alarm. The commit stands; but if the alarm
    /// was refused, whoever asked had better ask again.
    async fn confirmed(&self, done: GroupOutcome, alarm: Option<AlarmWrite>) -> GroupOutcome {
        let Some(alarm) = alarm else { return done };
        let Err(error) = alarm.await else { return done };
        self.forget_alarm();
        if done.committed() == 0 {
            return done;
        }
        alarm_in_doubt(error)
    }

    /// One step of the audit, and the alarm for what it repaired, in one turn.
    pub(super) fn audit(
        &self,
        after: Option<&Partition>,
        limit: usize,
    ) -> Result<(AuditPage, Option<AlarmWrite>), StoreError> {
        let mut state = self.lock();
        let page = self.transact(&mut state, |conn, writer| writer.audit(conn, after, limit))?;
        let earliest_ms = page.repairs.iter().map(|repair| repair.at_ms).min();
        let alarm = match earliest_ms {
            Some(at_ms) => self.lower(&mut state, at_ms)?,
            None => None,
        };
        Ok((page, alarm))
    }

    /// Leaves that mark in the turn in which an alarm is restored: the instance may have been made for the
    /// very alarm that is missed, and takes the place of its retry. If that fails the alarm counts more. One
    /// that was left before may have been taken back with a transaction of the application.
    pub(super) fn leave_mark(&self, state: &mut State) {
        if planted(Mutant::AlarmRestoredUnmarked) {
            return;
        }
        let left = self
            .storage
            .transaction(&mut |conn| schema::set_unclean_mark(conn, true));
        match left {
            Ok(()) => state.is_marked = true,
            Err(error) => tracing::warn!(%error, "a restored alarm leaves no mark"),
        }
    }

    /// Takes the mark away that a handler left when it set another alarm. If that fails it stays, and
    /// the next instance is cautious for nothing.
    pub(super) fn clear_mark(&self, state: &mut State) {
        if !state.is_marked {
            return;
        }
        let cleared = self
            .storage
            .transaction(&mut |conn| schema::set_unclean_mark(conn, false));
        match cleared {
            Ok(()) => state.is_marked = false,
            Err(error) => tracing::warn!(%error, "the mark of a served alarm stays"),
        }
    }

    /// A planted bug: commits, and sets the alarm a turn later.
    async fn write_with_late_alarm(
        &self,
        partition: &Partition,
        group: Group,
        stays: Stays,
    ) -> GroupOutcome {
        let done = self.commit(&mut self.lock(), partition, &group, &[], false, stays);
        give_way().await;
        let alarm = earliest_of(&group).map(|due_ms| self.lower(&mut self.lock(), due_ms));
        match alarm {
            Some(Ok(alarm)) => self.confirmed(done, alarm).await,
            Some(Err(_)) | None => done,
        }
    }
}

fn earliest_of(group: &Group) -> Option<u64> {
    group.batches.iter().filter_map(earliest_timer_put).min()
}

fn has_put(group: &Group) -> bool {
    group.batches.iter().any(Batch::has_put)
}

/// The alarm could not be set, so nothing was written.
fn not_armed(error: StoreError) -> StoreError {
    StoreError::unavailable("the alarm that the write needs could not be set").with_source(error)
}

/// The commit stands, but not the alarm that it needs.
fn alarm_in_doubt(error: impl std::error::Error + Send + Sync + 'static) -> GroupOutcome {
    let unknown = StoreError::unknown("the alarm of a commit was refused after it");
    GroupOutcome::stopped(unknown.with_source(error))
}

/// A batch of a whole has lost a guard: to another writer, or to a batch before it.
fn guard_lost() -> StoreError {
    StoreError::unavailable("what is to be written was changed in the meantime")
}

//! Running what waits: all of it in one transaction, whoever holds the write connection.
//!
//! A thread runs the queue while it holds [`Shared::write_side`]. One that finds it held goes away,
//! because the holder looks at the queue again *after* letting go: either the holder sees the new
//! work, or the thread that queued it finds the connection free. So nothing is stranded.

use dueline::sql::{Transaction, purge_orphans, schema};
use dueline::store::{Batch, GroupOutcome, StoreError, StoreErrorKind};
use rusqlite::ErrorCode;

use crate::counters::count;
use crate::error::{closed, store_error};
use crate::gate::failed;
use crate::open::{WriteSide, set_synchronous};
use crate::options::Durability;
use crate::shared::{AuditWork, GroupWork, Reply, Shared, Work, send};

/// Most requests of one transaction.
const GROUP_REQUESTS_MAX: usize = 1_024;
/// Bytes of batches after which a transaction takes no further request.
const GROUP_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Why a transaction did not commit.
enum Failure {
    /// It could not begin: nobody's fault, nothing written.
    Begin(StoreError),
    /// Nothing written; one of the requests may be at fault.
    Inside(StoreError),
    /// COMMIT failed and may have written.
    Doubt(StoreError),
}

impl Shared {
    /// Runs what waits, if the write connection is free: one transaction, and whatever came in
    /// meanwhile goes to the writer thread. For threads that are about to wait.
    pub(crate) fn run_if_free(&self) {
        if self.writes.is_empty() {
            return;
        }
        let Some(mut side) = self.try_write_side() else {
            return;
        };
        let replies = self.run_some(&mut side);
        drop(side);
        send(replies);
        self.checkpoint_if_due();
        if !self.writes.is_empty() {
            self.writes.nudge();
        }
    }

    /// Runs what waits until nothing does. For the writer thread.
    pub(crate) fn run_all(&self) {
        while !self.writes.is_empty() {
            let replies = self.run_some(&mut self.locked_write_side());
            send(replies);
            self.checkpoint_if_due();
        }
    }

    /// Runs one transaction of what waits, and audits in one each.
    fn run_some(&self, side: &mut Option<WriteSide>) -> Vec<Reply> {
        let mut left = GROUP_REQUESTS_MAX;
        let mut bytes = 0;
        let work = self.writes.take(|work| {
            let more = left > 0 && bytes < GROUP_BYTES_MAX;
            left = left.saturating_sub(1);
            if let Work::Group(work) = work {
                bytes += work.group.batches.iter().map(Batch::bytes).sum::<usize>();
            }
            more
        });
        let mut groups = Vec::with_capacity(work.len());
        let mut replies = Vec::with_capacity(work.len());
        for work in work {
            match work {
                Work::Group(group) => groups.push(group),
                Work::Audit(audit) => replies.push(self.run_audit(side, audit)),
            }
        }
        self.run_groups(side, groups, &mut replies);
        replies
    }

    fn run_groups(
        &self,
        side: &mut Option<WriteSide>,
        groups: Vec<GroupWork>,
        replies: &mut Vec<Reply>,
    ) {
        if groups.is_empty() {
            return;
        }
        for _ in &groups {
            count(&self.counting.applies);
        }
        let mut attempted = self.attempt_groups(side, &groups);
        if let Err(Failure::Inside(error)) = &attempted
            && error.kind() == StoreErrorKind::Full
            && side.as_mut().is_some_and(|side| self.make_room(side))
        {
            attempted = self.attempt_groups(side, &groups);
        }
        match attempted {
            Ok(outcomes) => {
                for (work, outcome) in groups.into_iter().zip(outcomes) {
                    replies.push(Box::new(|| work.answer.send(outcome)));
                }
            }
            Err(Failure::Inside(_)) if groups.len() > 1 => {
                for work in groups {
                    let alone = std::slice::from_ref(&work);
                    let outcome = match self.attempt_groups(side, alone) {
                        Ok(outcomes) => outcomes.into_iter().next().unwrap_or_default(),
                        Err(failure) => self.stopped(side, failure, alone),
                    };
                    replies.push(Box::new(|| work.answer.send(outcome)));
                }
            }
            Err(failure) => {
                let outcome = self.stopped(side, failure, &groups);
                for work in groups {
                    let outcome = outcome.clone();
                    replies.push(Box::new(|| work.answer.send(outcome)));
                }
            }
        }
    }

    fn attempt_groups(
        &self,
        side: &mut Option<WriteSide>,
        groups: &[GroupWork],
    ) -> Result<Vec<GroupOutcome>, Failure> {
        let orphans = self.take_orphans();
        self.attempt(side, |side| {
            purge_orphans(&side.backend, &orphans)?;
            let mut transaction = Transaction::new(&side.backend, &mut side.writer);
            for work in groups {
                transaction.run(&work.partition, &work.group)?;
            }
            let finished = transaction.finish()?;
            Ok((finished.outcomes, finished.memory))
        })
    }

    fn run_audit(&self, side: &mut Option<WriteSide>, audit: AuditWork) -> Reply {
        let done = self.attempt(side, |side| {
            side.writer
                .audit(&side.backend, audit.after.as_ref(), audit.limit)
        });
        let answer = done.map_err(|failure| {
            let stopped = self.stopped(side, failure, &[]);
            stopped.stopped_by.unwrap_or_else(closed)
        });
        Box::new(|| audit.answer.send(answer))
    }

    /// One transaction: what it comes to, and what the writer then remembers.
    fn attempt<T>(
        &self,
        side: &mut Option<WriteSide>,
        inside: impl FnOnce(&mut WriteSide) -> Result<(T, dueline::sql::MemoryChange), StoreError>,
    ) -> Result<T, Failure> {
        let Some(side) = side else {
            return Err(Failure::Begin(
                self.gate.check().err().unwrap_or_else(failed),
            ));
        };
        count(&self.counting.transactions);
        side.begin()
            .map_err(|error| Failure::Begin(store_error(error)))?;
        match inside(side) {
            Ok((done, memory)) => {
                self.commit(side)?;
                side.writer.committed(memory);
                side.room_made_at_pages = None;
                count(&self.counting.commits);
                Ok(done)
            }
            Err(error) => {
                side.roll_back();
                Err(Failure::Inside(error))
            }
        }
    }

    /// COMMIT. Busy, full and read-only say for certain that nothing was written: the frame that
    /// makes a transaction count is the last one written. Anything else leaves it open.
    fn commit(&self, side: &WriteSide) -> Result<(), Failure> {
        let Err(error) = self.commit_statement(side) else {
            return Ok(());
        };
        side.roll_back();
        let definite = matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::DiskFull
                    | ErrorCode::ReadOnly
            )
        );
        let error = store_error(error);
        Err(if definite {
            Failure::Inside(error)
        } else {
            Failure::Doubt(error)
        })
    }

    #[cfg(not(test))]
    fn commit_statement(&self, side: &WriteSide) -> rusqlite::Result<()> {
        side.backend.control("COMMIT")
    }

    #[cfg(test)]
    fn commit_statement(&self, side: &WriteSide) -> rusqlite::Result<()> {
        self.faults.commit(side)
    }

    /// What a failure means for the requests it stopped.
    fn stopped(
        &self,
        side: &mut Option<WriteSide>,
        failure: Failure,
        groups: &[GroupWork],
    ) -> GroupOutcome {
        GroupOutcome::stopped(match failure {
            Failure::Begin(error) => error,
            Failure::Inside(error) => {
                let puts = groups
                    .iter()
                    .flat_map(|work| &work.group.batches)
                    .any(Batch::has_put);
                if error.kind() == StoreErrorKind::Full && !puts {
                    // The contract: what only deletes is never full.
                    StoreError::unavailable("no room on the disk even to delete").with_source(error)
                } else {
                    error
                }
            }
            Failure::Doubt(error) => {
                self.settle_doubt(side, &error);
                StoreError::unknown("the commit ended in an I/O error; read again before deciding")
                    .with_source(error)
            }
        })
    }

    /// Settles a commit whose outcome is in doubt before anything is read to anybody: SQLite may
    /// say "not there" now and replay the frames after a restart. A synced commit of one row
    /// overwrites them. If that fails too the store is closed until its file opens again.
    fn settle_doubt(&self, side: &mut Option<WriteSide>, error: &StoreError) {
        count(&self.counting.doubtful_commits);
        tracing::error!(?error, path = %self.path.display(), "a commit failed; settling it");
        self.gate.hold();
        let settled = side.as_mut().is_some_and(|side| {
            side.writer.forget();
            match self.commit_settling(side) {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(%error, "the failed commit could not be settled; store closed");
                    false
                }
            }
        });
        if settled {
            self.gate.release();
        } else {
            self.gate.fail();
            *side = None;
            self.writes.nudge();
        }
    }

    /// A synced commit of one row nobody reads.
    pub(crate) fn commit_settling(&self, side: &WriteSide) -> Result<(), StoreError> {
        side.roll_back();
        let connection = &side.backend.connection;
        set_synchronous(connection, Durability::PowerLoss).map_err(store_error)?;
        let settled = side
            .begin()
            .map_err(store_error)
            .and_then(|()| schema::settle_doubt(&side.backend))
            .and_then(|()| self.commit_statement(side).map_err(store_error));
        side.roll_back();
        set_synchronous(connection, self.options.durability).map_err(store_error)?;
        settled
    }
}

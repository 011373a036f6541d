//! The store's own threads.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dueline::sql::Reads;
use dueline::store::StoreError;

use crate::counters::count;
use crate::error::{closed, store_error};
use crate::foreign::guarded;
use crate::inbox::Woken;
use crate::open::{WriteSide, open_write_side};
use crate::read_session::{SharedSession, locked};
use crate::shared::{Shared, send};

/// Most reads that share one snapshot.
const READS_PER_SNAPSHOT: usize = 64;
const REOPEN_FIRST: Duration = Duration::from_secs(1);
const REOPEN_LAST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Threads {
    writer: JoinHandle<()>,
    readers: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let started = Self::start_all(shared);
        if started.is_err() {
            // Those that did start end.
            shared.writes.close();
            shared.reads.close();
        }
        started
    }

    fn start_all(shared: &Arc<Shared>) -> io::Result<Self> {
        let mut readers = Vec::new();
        for _ in 0..shared.options.reader_threads {
            let shared = Arc::clone(shared);
            let thread = thread::Builder::new().name("dueline-read".to_owned());
            readers.push(thread.spawn(move || serve_reads(&shared))?);
        }
        let shared = Arc::clone(shared);
        let writer = thread::Builder::new()
            .name("dueline-write".to_owned())
            .spawn(move || serve_writes(&shared))?;
        Ok(Self { writer, readers })
    }

    /// Waits for the threads to end, but not for the one that calls: the last handle may be dropped
    /// by a future that one of them has just woken.
    pub(crate) fn join(self) {
        for thread in self.readers.into_iter().chain([self.writer]) {
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}

fn serve_writes(shared: &Shared) {
    let mut backoff = REOPEN_FIRST;
    loop {
        let limit = shared.gate.is_failed().then_some(backoff);
        let woken = shared.writes.wait(limit);
        if woken == Woken::Timeout {
            backoff = match shared.reopen() {
                Ok(()) => REOPEN_FIRST,
                Err(error) => {
                    tracing::error!(?error, path = %shared.path.display(), "cannot reopen the store");
                    REOPEN_LAST.min(backoff * 2)
                }
            };
        }
        guarded("committing", || shared.run_all());
        if woken == Woken::Closed {
            break;
        }
    }
    shared.finish();
}

fn serve_reads(shared: &Shared) {
    let session = shared.new_session();
    while shared.reads.wait(None) != Woken::Closed {
        guarded("reading", || read_some(shared, &session));
        locked(&session).end();
    }
}

/// Serves some of the reads that wait, in one snapshot.
fn read_some(shared: &Shared, session: &SharedSession) {
    let mut left = READS_PER_SNAPSHOT;
    let jobs = shared.reads.take(|_| {
        let more = left > 0;
        left = left.saturating_sub(1);
        more
    });
    let mut replies = Vec::with_capacity(jobs.len());
    let mut reading = locked(session);
    for job in jobs {
        let mut job = Some(job);
        let read = reading.read(shared, |reads: Reads<'_>| {
            replies.extend(job.take().map(|job| job(Ok(reads))));
            Ok(())
        });
        if let (Err(error), Some(job)) = (read, job) {
            replies.push(job(Err(error)));
        }
    }
    reading.end();
    drop(reading);
    send(replies);
}

impl Shared {
    /// Opens the file of a failed store again. Every connection is closed first, so that the log is
    /// recovered from what is really in it; a synced commit then ends the doubt.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        let done = self.reopen_into(&mut self.locked_write_side());
        // A thread may have found the connection held and left its work.
        self.writes.nudge();
        done
    }

    fn reopen_into(&self, side: &mut Option<WriteSide>) -> Result<(), StoreError> {
        if !self.gate.is_failed() {
            return self.gate.check();
        }
        self.close_sessions();
        *side = None;
        let opened = open_write_side(&self.path, &self.options).map_err(|error| {
            StoreError::unavailable("the file of the store cannot be opened").with_source(error)
        })?;
        self.commit_settling(&opened)?;
        *side = Some(opened);
        count(&self.counting.reopened);
        self.gate.recover();
        tracing::info!(path = %self.path.display(), "the store is open again");
        Ok(())
    }

    /// The last deed of the writer thread: the mark of a clean stop, and the file is free.
    fn finish(&self) {
        self.gate.close();
        self.retire_sessions();
        let side = self.locked_write_side().take();
        if let Some(side) = side {
            if let Err(error) = side.mark_clean() {
                tracing::error!(?error, "the store could not be marked as cleanly closed");
            }
            if let Err((_, error)) = side.backend.connection.close() {
                tracing::warn!(error = ?store_error(error), "the database did not close");
            }
        }
        for work in self.writes.take(|_| true) {
            drop(work);
        }
        for job in self.reads.take(|_| true) {
            send(vec![job(Err(closed()))]);
        }
        self.release_lock();
    }
}

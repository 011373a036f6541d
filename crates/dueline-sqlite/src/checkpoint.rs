//! Keeping the log short.
//!
//! The write connection checkpoints itself when the log passes [`CHECKPOINT_PAGES`], after the
//! callers have their answers; the next commit then starts the log over, in place. A checkpoint on
//! another connection alone never bounds the log, because a writer that keeps committing is never
//! caught up with. Readers that overlap without a gap keep the log from starting over too: past
//! [`RESTART_PAGES`] new ones are held back for the moment it takes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Connection;

use crate::counters::count;
use crate::open::WriteSide;
use crate::shared::Shared;

/// Pages in the log from which it is checkpointed: 16 MiB.
pub(crate) const CHECKPOINT_PAGES: u64 = 4_000;
/// Pages in the log from which readers are held back to restart it.
const RESTART_PAGES: u64 = 4 * CHECKPOINT_PAGES;
/// How long a restart waits for readers that are at work.
const RESTART_WAIT: Duration = Duration::from_millis(200);

impl Shared {
    /// Checkpoints if the log is long enough and nobody is committing; who is sees to it. The
    /// caller looks at the queue afterwards, as after a commit.
    pub(crate) fn checkpoint_if_due(&self) {
        let Some(mut side) = self.try_write_side() else {
            return;
        };
        let Some(side) = side.as_mut() else { return };
        let pages = side.log_pages.load(Ordering::Relaxed);
        if pages < CHECKPOINT_PAGES {
            side.restart_at_pages = RESTART_PAGES;
            return;
        }
        count(&self.counting.checkpoints);
        let connection = &side.backend.connection;
        let done = if pages >= side.restart_at_pages.max(RESTART_PAGES) {
            // A reader that stays (a backup, another program) makes this fail: tried ever more
            // rarely, because other readers wait meanwhile.
            side.restart_at_pages = pages.saturating_mul(2);
            self.gate.hold();
            let done = restart(connection, self.options.busy_timeout);
            self.gate.release();
            done
        } else {
            checkpoint(connection, "PASSIVE")
        };
        let failed = done.is_err();
        if let Err(error) = done
            && !side.checkpoint_failed
        {
            tracing::warn!(%error, pages, "the log cannot be checkpointed; tried at every commit");
        }
        side.checkpoint_failed = failed;
    }

    /// Starts the log over after a commit that found no room: most of the room that the store takes
    /// may be log whose pages are in the database already, or fit into it. Tried once until a
    /// commit succeeds or the log has another length, so that a store that stays full does not do it
    /// at every call. `true` if the commit may be worth another try.
    pub(crate) fn make_room(&self, side: &mut WriteSide) -> bool {
        let pages = side.log_pages.load(Ordering::Relaxed);
        if side.room_made_at_pages == Some(pages) {
            return false;
        }
        side.room_made_at_pages = Some(pages);
        count(&self.counting.checkpoints);
        self.gate.hold();
        let done = restart(&side.backend.connection, self.options.busy_timeout);
        self.gate.release();
        match done {
            Ok(true) => true,
            // A reader stays: another time.
            Ok(false) => {
                side.room_made_at_pages = None;
                false
            }
            Err(error) => {
                tracing::warn!(%error, pages, "no room, and none can be made out of the log");
                false
            }
        }
    }

    /// Checkpoints as much as can be without waiting for anybody.
    pub(crate) fn checkpoint_now(&self) -> rusqlite::Result<()> {
        let done = match self.locked_write_side().as_ref() {
            Some(side) => checkpoint(&side.backend.connection, "PASSIVE").map(|_| ()),
            None => Ok(()),
        };
        count(&self.counting.checkpoints);
        // A thread may have found the connection held and left its work.
        self.writes.nudge();
        done
    }
}

/// Checkpoints; `true` unless somebody was in the way.
pub(crate) fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<bool> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(row.get::<_, i64>(0)? == 0)
    })
}

fn restart(connection: &Connection, busy_timeout: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(RESTART_WAIT)?;
    let done = checkpoint(connection, "RESTART");
    connection.busy_timeout(busy_timeout)?;
    done
}

//! One run: work, with one fault, and everything that must hold behind it.

use std::ops::Range;
use std::sync::Arc;

use dueline::store::{Partition, StoreError, WakeStore};
use dueline_sqlite::{BackupError, Durability, OpenError, SqliteStore};
use dueline_testkit::ManualClock;

use super::base::Base;
use super::verify::{contradiction, images, to_the_end};
use super::work::{Witness, check_error, runtime};
use super::{Ran, Work};
use crate::Failure;
use crate::check::intact;
use crate::disk::Files;
use crate::fault::{Call, Cause, Fault};
use crate::folder::{UnsyncedFolder, WatchedFolder};
use crate::script::{DATABASE, START_MS, options};
use crate::world::{Rows, engine, read_all, run as on_thread};

const BACKUP: &str = "backup.db";

struct Run<'a> {
    base: &'a Base,
    folder: WatchedFolder,
    clock: ManualClock,
    witness: Witness,
}

pub(crate) fn run(
    base: &Base,
    work: Work,
    fault: Fault,
    image_count: u64,
    seed: u64,
) -> Result<Ran, Failure> {
    let fresh = work == Work::Create;
    let nothing = Files::new();
    let mut run = Run {
        base,
        folder: WatchedFolder::new(if fresh { &nothing } else { &base.files })?,
        clock: ManualClock::new(START_MS),
        witness: Witness {
            seen: Some(if fresh {
                Rows::new()
            } else {
                base.rows.clone()
            }),
            expected: if fresh {
                Vec::new()
            } else {
                base.expected.clone()
            },
            refused: false,
        },
    };
    let mut too_late = false;
    let store = match work {
        Work::Create | Work::Recover => run.open_with(fault)?,
        _ => {
            let store = run.open()?;
            if work == Work::Reopen {
                run.fail_store(&store)?;
            }
            run.folder.watched().set_fault(fault);
            too_late = store.counters().reopened > 0;
            run.work(&store, work)?;
            Some(store)
        }
    };
    // The moment: whatever was read last must be what a crash leaves now.
    let mut checked = run.images(0..image_count, seed)?;
    let failed = run.folder.watched().lift_fault();
    let store = match store {
        Some(store) if work != Work::Close => store,
        other => {
            drop(other);
            run.open()?
        }
    };
    store.reopen()?;
    run.witness.look(&store)?;
    if run.witness.seen.is_none() {
        return Err("nothing can be read although the fault is gone".into());
    }
    checked += run.images(1..1 + image_count / 2, seed)?;
    run.recovered(&store)?;
    Ok(Ran {
        failed,
        refused: run.witness.refused,
        images: checked,
        too_late,
    })
}

impl Run<'_> {
    fn open(&self) -> Result<SqliteStore, OpenError> {
        SqliteStore::open(
            self.folder.file(DATABASE),
            options(&self.clock, Durability::PowerLoss),
        )
    }

    /// Opens while the fault is on; its error must fit.
    fn open_with(&mut self, fault: Fault) -> Result<Option<SqliteStore>, Failure> {
        self.folder.watched().set_fault(fault);
        match self.open() {
            Ok(store) => {
                self.witness.look(&store)?;
                Ok(Some(store))
            }
            Err(
                OpenError::CannotOpen { .. } | OpenError::Full { .. } | OpenError::Database { .. },
            ) => {
                self.witness.refused = true;
                Ok(None)
            }
            Err(error) => Err(format!("a failing disk is reported as {error:?}").into()),
        }
    }

    fn work(&mut self, store: &SqliteStore, work: Work) -> Result<(), Failure> {
        match work {
            Work::Schedule => {
                let engine = engine(Arc::new(store.clone()), runtime(&self.clock))?;
                self.witness.verbs(store, engine.timers())
            }
            Work::Tick => {
                let here = store
                    .for_blocking_threads()
                    .ok_or("the store has no handle for blocking threads")?;
                let ticks: Arc<dyn WakeStore> = Arc::clone(&here);
                let engine = engine(ticks, runtime(&self.clock))?;
                self.witness.ticks(here.as_ref(), &engine, &self.clock)
            }
            Work::Checkpoint => self.tried(store, SqliteStore::checkpoint),
            Work::Reopen => self.tried(store, SqliteStore::reopen),
            Work::Backup => self.backup(store),
            Work::Close => {
                store.close();
                Ok(())
            }
            Work::Create | Work::Recover => Ok(()),
        }
    }

    fn tried(
        &mut self,
        store: &SqliteStore,
        work: impl FnOnce(&SqliteStore) -> Result<(), StoreError>,
    ) -> Result<(), Failure> {
        if let Err(error) = work(store) {
            check_error(&error)?;
            self.witness.refused = true;
        }
        self.witness.look(store)
    }

    /// Lets a commit fail that cannot be settled either: every sync fails.
    fn fail_store(&mut self, store: &SqliteStore) -> Result<(), Failure> {
        let syncs = Fault {
            call: 1,
            cause: Cause::Io,
            lasting: true,
            only: Some(Call::Sync),
        };
        self.folder.watched().set_fault(syncs);
        let engine = engine(Arc::new(store.clone()), runtime(&self.clock))?;
        let partition = Partition::new("doubtful")?;
        self.witness
            .schedule(store, engine.timers(), &partition, "plain-doubt", true)?;
        self.folder.watched().lift_fault();
        if self.witness.seen.is_some() {
            return Err("a commit whose sync failed, and was not settled, is certain".into());
        }
        self.witness.refused = false;
        Ok(())
    }

    /// A backup is whole, or it is not there; nothing is left beside it.
    fn backup(&mut self, store: &SqliteStore) -> Result<(), Failure> {
        let whole = match store.backup_to(self.folder.file(BACKUP)) {
            Ok(()) => true,
            Err(BackupError::Copy { source, .. }) => {
                check_error(&source)?;
                self.witness.refused = true;
                false
            }
            Err(error) => return Err(format!("a failing disk is reported as {error:?}").into()),
        };
        for entry in std::fs::read_dir(self.folder.file(""))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let belongs = name.starts_with(DATABASE) || (whole && name == BACKUP);
            if !belongs {
                return Err(format!("a backup leaves {name}").into());
            }
        }
        if whole {
            self.whole_backup()?;
        }
        self.witness.look(store)
    }

    /// The backup holds what the database held.
    fn whole_backup(&self) -> Result<(), Failure> {
        let bytes = std::fs::read(self.folder.file(BACKUP))?;
        let files = Files::from([(DATABASE.to_owned(), bytes)]);
        let folder = UnsyncedFolder::new(&files)?;
        let path = folder.file(DATABASE);
        let store = SqliteStore::open(&path, options(&self.clock, Durability::PowerLoss))?;
        intact(&path, &self.clock)?;
        let found = on_thread(&store, read_all(&store))?;
        if found != self.base.rows {
            return Err(contradiction(&self.base.rows, &found));
        }
        Ok(())
    }

    fn images(&self, numbers: Range<u64>, seed: u64) -> Result<u64, Failure> {
        images(
            &self.folder,
            &self.clock,
            self.witness.seen.as_ref(),
            &self.witness.expected,
            numbers,
            seed,
        )
    }

    /// With the fault gone everything works: a new timer, and all to the end.
    fn recovered(&mut self, store: &SqliteStore) -> Result<(), Failure> {
        let engine = engine(Arc::new(store.clone()), runtime(&self.clock))?;
        let partition = Partition::new("afterwards")?;
        self.witness.refused = {
            let refused = self.witness.refused;
            self.witness
                .schedule(store, engine.timers(), &partition, "plain-after", true)?;
            refused
        };
        if !self
            .witness
            .expected
            .iter()
            .any(|timer| timer.reference.as_ref() == b"plain-after" && timer.allowed == [(1, 0)])
        {
            return Err("nothing can be scheduled although the fault is gone".into());
        }
        to_the_end(store, &self.clock, &self.witness.expected)?;
        store.close();
        intact(&self.folder.file(DATABASE), &self.clock)
    }
}

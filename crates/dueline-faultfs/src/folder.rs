//! Folders whose files the VFS treats in a way of its own, and what happened in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::{Disk, Event, FileId, Files};
use crate::fault::{Call, Fault};
use crate::random::Random;
use crate::vfs;

/// What the VFS does with the files of a folder.
#[derive(Clone, Debug)]
pub(crate) enum Treatment {
    /// As SQLite's own VFS.
    Plain,
    /// The same without syncs: for copies that need not survive anything.
    Unsynced,
    /// Everything is noted, and fails on demand.
    Watched(Arc<Watched>),
}

static FOLDERS: Mutex<BTreeMap<PathBuf, Treatment>> = Mutex::new(BTreeMap::new());

fn folders() -> MutexGuard<'static, BTreeMap<PathBuf, Treatment>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the file of this path is treated.
pub(crate) fn treatment(path: &Path) -> Treatment {
    let known = path
        .parent()
        .and_then(|folder| folders().get(folder).cloned());
    known.unwrap_or(Treatment::Plain)
}

/// A temporary folder in which no file is ever synced.
#[derive(Debug)]
pub struct UnsyncedFolder {
    place: Place,
}

impl UnsyncedFolder {
    /// A new folder with these files.
    ///
    /// # Errors
    /// If the folder cannot be written, or the VFS not be registered.
    pub fn new(files: &Files) -> io::Result<Self> {
        let place = Place::new(files, |_| Treatment::Unsynced)?;
        Ok(Self { place })
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }
}

/// A temporary folder in which every call is noted and can fail.
#[derive(Debug)]
pub struct WatchedFolder {
    place: Place,
    watched: Arc<Watched>,
}

impl WatchedFolder {
    /// A new folder with these files, which count as durable.
    ///
    /// # Errors
    /// If the folder cannot be written, or the VFS not be registered.
    pub fn new(files: &Files) -> io::Result<Self> {
        Self::on(Disk::with(files))
    }

    /// A folder as a killed process leaves it: all its writes are there, durable or not.
    ///
    /// # Errors
    /// If the folder cannot be written, or the VFS not be registered.
    pub fn on(disk: Disk) -> io::Result<Self> {
        let files = disk.live();
        let watched = Arc::new(Watched::new(disk));
        let place = Place::new(&files, |_| Treatment::Watched(Arc::clone(&watched)))?;
        watched.begin(&place.folder);
        Ok(Self { place, watched })
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    /// What is noted.
    pub fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }
}

/// A temporary folder that the VFS knows while this lives.
#[derive(Debug)]
struct Place {
    /// As SQLite names it: without symbolic links.
    folder: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Place {
    fn new(files: &Files, treatment: impl Fn(&Path) -> Treatment) -> io::Result<Self> {
        vfs::install()?;
        let temporary = tempfile::tempdir()?;
        let folder = temporary.path().canonicalize()?;
        for (name, bytes) in files {
            std::fs::write(folder.join(name), bytes)?;
        }
        folders().insert(folder.clone(), treatment(&folder));
        Ok(Self {
            folder,
            _temporary: temporary,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        folders().remove(&self.folder);
    }
}

/// What happened in a folder, and what is to fail there.
#[derive(Debug)]
pub struct Watched(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    base: Disk,
    events: Vec<Event>,
    names: BTreeMap<String, FileId>,
    next_file: FileId,
    counts: BTreeMap<Call, u64>,
    fault: Option<Fault>,
    /// Calls since the fault was set that its cause could have hit.
    hittable: u64,
    failed: Vec<Call>,
    /// Files that show what the disk may never get: a sync of them has failed, or the process that
    /// wrote them is dead. They carry [`marked`] as their time.
    suspects: BTreeSet<FileId>,
    folder: PathBuf,
}

/// When a suspect file was last written by SQLite, as its time says: long ago. Whoever writes it
/// without SQLite gives it another.
fn marked() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

impl Watched {
    fn new(base: Disk) -> Self {
        Self(Mutex::new(State {
            names: base.live_names(),
            next_file: base.next_file(),
            base,
            ..State::default()
        }))
    }

    fn begin(&self, folder: &Path) {
        let mut state = self.lock();
        folder.clone_into(&mut state.folder);
        state.suspects = state.base.unsynced();
        for file in state.suspects.clone() {
            let name = state.names.iter().find(|(_, id)| **id == file);
            if let Some((name, _)) = name {
                let path = folder.join(name);
                state.mark(file, &path);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the script got its answer to so many commits.
    pub fn acknowledge(&self, commits: usize) {
        self.note(Event::Acknowledged(commits));
    }

    /// From now on this fails.
    pub fn set_fault(&self, fault: Fault) {
        let mut state = self.lock();
        state.fault = Some(fault);
        state.hittable = 0;
        state.failed.clear();
    }

    /// Nothing fails any more. Returns the calls that did.
    pub fn lift_fault(&self) -> Vec<Call> {
        let mut state = self.lock();
        state.fault = None;
        std::mem::take(&mut state.failed)
    }

    /// How often each call was made.
    pub fn counts(&self) -> BTreeMap<Call, u64> {
        self.lock().counts.clone()
    }

    /// Everything that happened so far.
    pub fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    /// The folder as it was in the beginning.
    pub fn first_disk(&self) -> Disk {
        self.lock().base.clone()
    }

    /// The folder as it is now; `random` decides what failed syncs have left.
    pub fn disk(&self, random: &mut Random) -> Disk {
        let mut state = self.lock();
        for (name, file) in state.names.clone() {
            let path = state.folder.join(name);
            state.note_if_rewritten(file, &path);
        }
        let mut disk = state.base.clone();
        for event in &state.events {
            disk.step(event, random);
        }
        disk
    }

    /// Counts a call and says what it is to end in, if it is to fail.
    pub(crate) fn admit(&self, call: Call) -> Result<(), i32> {
        let mut state = self.lock();
        *state.counts.entry(call).or_default() += 1;
        let Some(fault) = state.fault else {
            return Ok(());
        };
        let Some(code) = fault.code(call) else {
            return Ok(());
        };
        state.hittable += 1;
        let hit = state.hittable == fault.call || (fault.lasting && state.hittable > fault.call);
        if !hit {
            return Ok(());
        }
        state.failed.push(call);
        Err(code)
    }

    pub(crate) fn note(&self, event: Event) {
        self.lock().events.push(event);
    }

    /// Before SQLite writes or syncs a file: if a sync of it failed and it was written over since,
    /// from outside, its bytes are durable after all. That whoever did so has synced it is taken on
    /// trust.
    pub(crate) fn before_change(&self, file: FileId, path: &Path) {
        self.lock().note_if_rewritten(file, path);
    }

    /// Behind a write, cut or sync of SQLite's; `sync_failed` makes the file suspect.
    pub(crate) fn after_change(&self, file: FileId, path: &Path, sync_failed: bool) {
        let mut state = self.lock();
        if sync_failed {
            state.suspects.insert(file);
        }
        state.mark(file, path);
    }

    /// The file of this name, new if there was none.
    pub(crate) fn opened(&self, name: &str) -> FileId {
        let mut state = self.lock();
        if let Some(id) = state.names.get(name) {
            return *id;
        }
        let id = state.next_file;
        state.next_file += 1;
        state.names.insert(name.to_owned(), id);
        state.events.push(Event::Created(id, name.to_owned()));
        id
    }

    pub(crate) fn deleted(&self, name: &str, with_folder: bool) {
        let mut state = self.lock();
        state.names.remove(name);
        state
            .events
            .push(Event::Deleted(name.to_owned(), with_folder));
    }
}

impl State {
    /// Gives a suspect file its mark.
    fn mark(&mut self, file: FileId, path: &Path) {
        if self.suspects.contains(&file)
            && let Ok(opened) = File::options().write(true).open(path)
            && opened.set_modified(marked()).is_err()
        {
            // Without its mark it would pass for rewritten.
            self.suspects.remove(&file);
        }
    }

    fn note_if_rewritten(&mut self, file: FileId, path: &Path) {
        // A file that is deleted has no time, and nobody else writes it.
        if self.suspects.contains(&file)
            && let Ok(time) = std::fs::metadata(path).and_then(|found| found.modified())
            && time != marked()
        {
            self.events.push(Event::Rewritten(file));
            self.mark(file, path);
        }
    }
}

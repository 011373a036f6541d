//! What a disk holds: what is durable, what is not yet, and what a power cut may leave of it.
//!
//! Built from the [`Event`]s of a run, so that one run gives the images of every moment. A sync makes
//! the writes of one file durable; a sync of the folder makes the names durable. A crash keeps any
//! subset of the rest: each write whole, not at all, or some of its sectors; each truncation and each
//! change of a name or not. Sectors have [`SECTOR_BYTES`], counted from the start of the file.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;

/// What a disk writes at once, or not at all.
pub const SECTOR_BYTES: u64 = 512;

/// The files of a folder by their names.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A file, under whatever name.
pub type FileId = u64;

/// Something that was done to the folder, in the order in which it was done.
#[derive(Clone, Debug)]
pub enum Event {
    /// The file came into being under this name.
    Created(FileId, String),
    /// The bytes were written at the offset.
    Written(FileId, u64, Vec<u8>),
    /// The file was cut, or filled with zeros, to this length.
    Truncated(FileId, u64),
    /// The file was synced; with the folder, if `true`.
    Synced(FileId, bool),
    /// The file was to be synced, and that failed: each waiting write reached the disk or is lost
    /// for good, and no later sync says which.
    SyncFailed(FileId),
    /// Somebody wrote the whole file over itself and synced it, without SQLite.
    Rewritten(FileId),
    /// The name was removed; the folder was synced, if `true`.
    Deleted(String, bool),
    /// The script got its answer to so many commits.
    Acknowledged(usize),
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Debug, Default)]
struct FileState {
    /// What the system shows while it lives. A failed sync does not change it.
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Add(String, FileId),
    Remove(String),
}

/// The state of a folder at one moment.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<FileId, FileState>,
    names: BTreeMap<String, FileId>,
    pending_names: Vec<NameChange>,
    acknowledged: usize,
}

impl Disk {
    /// A folder with these files, durable.
    pub fn with(files: &Files) -> Self {
        let mut disk = Self::default();
        for (id, (name, bytes)) in (0..).zip(files) {
            disk.names.insert(name.clone(), id);
            let state = FileState {
                live: bytes.clone(),
                durable: bytes.clone(),
                pending: Vec::new(),
            };
            disk.files.insert(id, state);
        }
        disk
    }

    /// The names as they are while the system lives.
    pub(crate) fn live_names(&self) -> BTreeMap<String, FileId> {
        let mut names = self.names.clone();
        for change in &self.pending_names {
            rename(&mut names, change);
        }
        names
    }

    /// The files that hold writes which no sync has made durable.
    pub(crate) fn unsynced(&self) -> BTreeSet<FileId> {
        let waiting = self
            .files
            .iter()
            .filter(|(_, file)| !file.pending.is_empty());
        waiting.map(|(id, _)| *id).collect()
    }

    /// A number that no file has had.
    pub(crate) fn next_file(&self) -> FileId {
        self.files.keys().last().map_or(0, |last| last + 1)
    }

    /// Goes one event further. `random` decides what a failed sync leaves.
    pub fn step(&mut self, event: &Event, random: &mut Random) {
        match event {
            Event::Created(file, name) => {
                self.files.entry(*file).or_default();
                self.pending_names
                    .push(NameChange::Add(name.clone(), *file));
            }
            Event::Written(file, offset, bytes) => {
                self.change(*file, Change::Write(*offset, bytes.clone()));
            }
            Event::Truncated(file, length) => self.change(*file, Change::Truncate(*length)),
            Event::Synced(file, with_folder) => {
                let state = self.files.entry(*file).or_default();
                for change in std::mem::take(&mut state.pending) {
                    apply(&mut state.durable, &change);
                }
                if *with_folder {
                    self.sync_names();
                }
            }
            Event::SyncFailed(file) => {
                let state = self.files.entry(*file).or_default();
                for change in std::mem::take(&mut state.pending) {
                    apply_some(&mut state.durable, &change, random, 50);
                }
            }
            Event::Rewritten(file) => {
                let state = self.files.entry(*file).or_default();
                state.durable.clone_from(&state.live);
                state.pending.clear();
            }
            Event::Deleted(name, with_folder) => {
                self.pending_names.push(NameChange::Remove(name.clone()));
                if *with_folder {
                    self.sync_names();
                }
            }
            Event::Acknowledged(commits) => self.acknowledged = *commits,
        }
    }

    /// How many commits the script had got its answer to.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// What is there while the system lives: what a killed process leaves.
    pub fn live(&self) -> Files {
        let names = self.live_names().into_iter();
        names
            .filter_map(|(name, id)| Some((name, self.files.get(&id)?.live.clone())))
            .collect()
    }

    /// What a power cut leaves if nothing that waited had reached the disk.
    pub fn durable(&self) -> Files {
        self.left(|_| false, |_, _| ())
    }

    /// What a power cut may leave: of all that waited about `kept_percent`, in whole or in part.
    pub fn crashed(&self, random: &mut Random, kept_percent: u64) -> Files {
        let mut names = Random::new(random.draw());
        self.left(
            |_| names.percent(kept_percent),
            |bytes, change| apply_some(bytes, change, random, kept_percent),
        )
    }

    fn left(
        &self,
        mut keep_name: impl FnMut(&NameChange) -> bool,
        mut keep: impl FnMut(&mut Vec<u8>, &Change),
    ) -> Files {
        let mut names = self.names.clone();
        for change in &self.pending_names {
            if keep_name(change) {
                rename(&mut names, change);
            }
        }
        let mut files = Files::new();
        for (name, id) in names {
            let Some(file) = self.files.get(&id) else {
                continue;
            };
            let mut bytes = file.durable.clone();
            for change in &file.pending {
                keep(&mut bytes, change);
            }
            files.insert(name, bytes);
        }
        files
    }

    fn change(&mut self, file: FileId, change: Change) {
        let state = self.files.entry(file).or_default();
        apply(&mut state.live, &change);
        state.pending.push(change);
    }

    fn sync_names(&mut self) {
        for change in std::mem::take(&mut self.pending_names) {
            rename(&mut self.names, &change);
        }
    }
}

fn rename(names: &mut BTreeMap<String, FileId>, change: &NameChange) {
    match change {
        NameChange::Add(name, file) => {
            names.insert(name.clone(), *file);
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, data) => write_at(bytes, *offset, data),
        Change::Truncate(length) => bytes.resize(place(*length), 0),
    }
}

/// Applies the change, or not, or a write in part.
fn apply_some(bytes: &mut Vec<u8>, change: &Change, random: &mut Random, kept_percent: u64) {
    let keep = random.percent(kept_percent);
    let torn = random.percent(25);
    match change {
        Change::Write(offset, data) if torn => {
            for (at, sector) in sectors(*offset, data) {
                if random.percent(kept_percent) {
                    write_at(bytes, at, sector);
                }
            }
        }
        _ if keep => apply(bytes, change),
        _ => {}
    }
}

/// The pieces of a write that lie in one sector each.
fn sectors(offset: u64, data: &[u8]) -> Vec<(u64, &[u8])> {
    let mut pieces = Vec::new();
    let (mut at, mut rest) = (offset, data);
    while !rest.is_empty() {
        let room = place(SECTOR_BYTES - at % SECTOR_BYTES).min(rest.len());
        let (piece, behind) = rest.split_at(room);
        pieces.push((at, piece));
        at += piece.len() as u64;
        rest = behind;
    }
    pieces
}

fn write_at(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let start = place(offset);
    let end = start.saturating_add(data.len());
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(target) = bytes.get_mut(start..end) {
        target.copy_from_slice(data);
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(events: &[Event]) -> Disk {
        let mut disk = Disk::default();
        let mut random = Random::new(1);
        for event in events {
            disk.step(event, &mut random);
        }
        disk
    }

    fn created_and_synced() -> Vec<Event> {
        vec![
            Event::Created(1, "a".to_owned()),
            Event::Written(1, 0, vec![1; 2_000]),
            Event::Synced(1, true),
        ]
    }

    #[test]
    fn what_was_synced_is_in_every_image() {
        let disk = disk(&created_and_synced());
        for seed in 0..50 {
            let files = disk.crashed(&mut Random::new(seed), 50);
            assert_eq!(files["a"], vec![1; 2_000]);
        }
    }

    #[test]
    fn a_write_that_waits_is_kept_lost_or_torn_between_sectors() {
        let mut events = created_and_synced();
        events.push(Event::Written(1, 500, vec![2; 1_024]));
        let disk = disk(&events);
        assert_eq!(disk.durable()["a"], vec![1; 2_000]);
        assert_eq!(disk.live()["a"][500..1_524], vec![2; 1_024]);
        let (mut whole, mut lost, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let bytes = &disk.crashed(&mut Random::new(seed), 50)["a"];
            match bytes[500..1_524].iter().filter(|byte| **byte == 2).count() {
                0 => lost += 1,
                1_024 => whole += 1,
                // It lies in three sectors with 12, 512 and 500 of its bytes.
                part => {
                    assert!([12, 512, 500, 524, 1_012].contains(&part), "{part}");
                    torn += 1;
                }
            }
        }
        assert!(
            whole > 20 && lost > 20 && torn > 10,
            "{whole} {lost} {torn}"
        );
    }

    #[test]
    fn a_name_is_durable_only_once_its_folder_was_synced() {
        let events = [
            Event::Created(1, "a".to_owned()),
            Event::Written(1, 0, vec![1]),
            Event::Synced(1, false),
        ];
        assert!(disk(&events).durable().is_empty());
        assert_eq!(disk(&events).live()["a"], vec![1]);
        let mut events = created_and_synced();
        events.push(Event::Deleted("a".to_owned(), false));
        assert!(disk(&events).durable().contains_key("a"));
        assert!(disk(&events).live().is_empty());
        events.push(Event::Deleted("b".to_owned(), true));
        assert!(disk(&events).durable().is_empty());
    }

    #[test]
    fn a_failed_sync_leaves_each_write_there_or_lost_for_good() {
        let mut events = created_and_synced();
        events.push(Event::Written(1, 0, vec![2; 512]));
        events.push(Event::SyncFailed(1));
        events.push(Event::Synced(1, false));
        let mut outcomes = BTreeSet::new();
        for seed in 0..50 {
            let mut disk = Disk::default();
            let mut random = Random::new(seed);
            for event in &events {
                disk.step(event, &mut random);
            }
            outcomes.insert(disk.durable()["a"][0]);
        }
        assert_eq!(Vec::from_iter(outcomes), [1, 2]);
    }
}

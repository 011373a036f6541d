//! The n-th call to the file system fails, for every n until a run meets no failure; each run is
//! checked as the module `errors` says.
//!
//! The short form of `cargo run -p dueline-faultfs -- errors`: the ways to fail that have most to
//! say of each piece of work, and fewer images of each moment.
#![cfg(test)]

use dueline_faultfs::errors::{Swept, Work, sweep};
use dueline_faultfs::fault::{Call, Cause};

const SEED: u64 = 20_261_130;

fn swept(work: Work, way: (Cause, bool), images: u64) -> Swept {
    let found = sweep(work, way, images, SEED).unwrap_or_else(|error| panic!("{error}"));
    assert!(found.runs > 5, "hardly a call failed: {found:?}");
    found
}

#[test]
fn scheduling_holds_when_a_call_and_all_behind_it_fail() {
    let found = swept(Work::Schedule, (Cause::Io, true), 2);
    for call in [Call::Read, Call::Write, Call::Sync, Call::LockIndex] {
        assert!(found.calls.contains_key(&call), "{call:?}: {found:?}");
    }
    assert_eq!(found.refused, found.runs);
}

#[test]
fn ticks_hold_when_the_disk_is_full_for_a_moment() {
    swept(Work::Tick, (Cause::NoRoom, false), 1);
}

#[test]
fn creating_a_database_holds_when_a_call_fails_once() {
    swept(Work::Create, (Cause::Io, false), 1);
}

#[test]
fn opening_after_a_kill_holds_when_a_call_fails_once() {
    swept(Work::Recover, (Cause::Io, false), 1);
}

#[test]
fn opening_again_after_an_unsettled_commit_holds_when_a_call_fails_once() {
    swept(Work::Reopen, (Cause::Io, false), 2);
}

#[test]
fn a_checkpoint_holds_when_a_call_fails_once() {
    swept(Work::Checkpoint, (Cause::Io, false), 2);
}

#[test]
fn a_backup_is_whole_or_leaves_nothing_when_a_call_and_all_behind_it_fail() {
    swept(Work::Backup, (Cause::Io, true), 1);
}

#[test]
fn a_backup_is_whole_or_leaves_nothing_when_the_disk_is_full() {
    swept(Work::Backup, (Cause::NoRoom, true), 1);
}

#[test]
fn closing_holds_when_a_call_fails_once() {
    swept(Work::Close, (Cause::Io, false), 2);
}

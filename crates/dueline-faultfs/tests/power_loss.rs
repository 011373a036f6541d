//! A power cut at any moment. One run of a script of 200 commits is recorded call by call; from the
//! record come the images that a power cut may leave, and each is opened, checked, compared with the
//! states that the script went through, and run to its end by its wakes alone.
//!
//! The short form of `cargo run -p dueline-faultfs -- powerloss`.
#![cfg(test)]

use dueline_faultfs::{power_loss, script};
use dueline_sqlite::Durability;

const IMAGES: usize = 110;
const SEED: u64 = 20_261_130;

#[test]
fn no_acknowledged_commit_is_lost_or_half_there_with_power_loss_durability() {
    let recording = script::record(Durability::PowerLoss).unwrap();
    assert!(recording.commits() >= script::COMMITS_MIN);
    let found = power_loss::sweep(&recording, IMAGES, SEED).unwrap();
    assert!(found.images >= 100, "{found:?}");
    assert_eq!(found.with_losses, 0, "{found:?}");
    // The cut comes at moments that matter: some commits in flight are there, some are not.
    assert!(found.in_flight_kept > 10 && found.in_flight_kept < found.images - 10);
}

#[test]
fn with_process_crash_durability_a_power_cut_loses_commits_and_nothing_else() {
    let recording = script::record(Durability::ProcessCrash).unwrap();
    // Every image is one whole state of the script, or the sweep would end in an error.
    let found = power_loss::sweep(&recording, IMAGES, SEED).unwrap();
    assert!(
        found.with_losses > 0,
        "the VFS keeps nothing apart: {found:?}"
    );
}

#[test]
fn what_was_read_after_a_kill_is_still_there_after_a_power_cut() {
    let recording = script::record(Durability::PowerLoss).unwrap();
    let found = power_loss::sweep_after_kill(&recording, 16, SEED).unwrap();
    assert!(found.images >= 100, "{found:?}");
}

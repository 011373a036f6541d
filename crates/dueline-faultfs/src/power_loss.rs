//! The sweep: a power cut at every sync and at every tenth write of the script.

use dueline_sqlite::{Durability, SqliteStore};
use dueline_testkit::ManualClock;

use crate::Failure;
use crate::check::check;
use crate::disk::{Disk, Event, Files};
use crate::folder::WatchedFolder;
use crate::random::Random;
use crate::script::{DATABASE, Recording, options};
use crate::world::{Rows, read_all, run};

/// Of the writes every so many-th is a crash point.
const WRITES_APART: usize = 10;
/// How much of what waited a random image keeps, in percent.
const KEPT_PERCENT: [u64; 3] = [50, 90, 15];

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Moments at which the power was cut.
    pub points: usize,
    /// Images checked.
    pub images: usize,
    /// Images that held the commit that was in flight.
    pub in_flight_kept: usize,
    /// Images that had lost acknowledged commits.
    pub with_losses: usize,
    /// Most acknowledged commits that one image had lost.
    pub lost_max: usize,
}

/// Cuts the power at every crash point, or at evenly chosen ones if `images` is too small for two
/// images of each, and checks several images of each: nothing of what waited kept, and random parts.
///
/// # Errors
/// The first image that is broken, or that holds no state of the script up to the commit in flight.
/// Lost commits are counted, not an error: whether they may be lost is the caller's to say.
pub fn sweep(recording: &Recording, images: usize, first_seed: u64) -> Result<Sweep, Failure> {
    let points = crash_points(&recording.events);
    let each = images.div_ceil(points.len().max(1)).max(2);
    // With room for two of each, no point is left out: a few images more do not matter.
    let points_max = if images >= 2 * points.len() {
        points.len()
    } else {
        images.div_ceil(each)
    };
    at_points(recording, &points, points_max, |done, disk, point| {
        for number in 0..each {
            let seed = seed_of(first_seed, point, number);
            done.add(recording, disk, &image(disk, number, seed))
                .map_err(|error| format!("event {point}, image {number}, seed {seed}: {error}"))?;
        }
        Ok(())
    })
}

/// Kills the process at evenly chosen crash points, opens the database again, reads everything, and
/// cuts the power then, and at each crash point of the close that follows: what was read must be
/// there.
///
/// # Errors
/// The first image that is broken, or that contradicts what was read.
pub fn sweep_after_kill(
    recording: &Recording,
    points_max: usize,
    first_seed: u64,
) -> Result<Sweep, Failure> {
    let points = crash_points(&recording.events);
    at_points(recording, &points, points_max, |done, disk, point| {
        let seed = seed_of(first_seed, point, 0);
        after_kill(done, recording, disk, seed)
            .map_err(|error| format!("event {point}, seed {seed}: {error}").into())
    })
}

fn after_kill(
    done: &mut Sweep,
    recording: &Recording,
    disk: &Disk,
    seed: u64,
) -> Result<(), Failure> {
    let folder = WatchedFolder::on(disk.clone())?;
    let clock = ManualClock::new(recording.ended_at_ms);
    let options = options(&clock, Durability::PowerLoss);
    let store = SqliteStore::open(folder.file(DATABASE), options)?;
    let read = run(&store, read_all(&store))?;
    let mut random = Random::new(seed);
    let mut later = folder.watched().disk(&mut random);
    let opened = folder.watched().events().len();
    still_there(done, recording, &later, &read, &mut random)?;
    store.close();
    let events = folder.watched().events();
    let mut at = opened;
    for point in crash_points(&events) {
        for event in events.get(at..point).unwrap_or_default() {
            later.step(event, &mut random);
        }
        if point > at {
            at = point;
            still_there(done, recording, &later, &read, &mut random)?;
        }
    }
    Ok(())
}

fn still_there(
    done: &mut Sweep,
    recording: &Recording,
    disk: &Disk,
    read: &Rows,
    random: &mut Random,
) -> Result<(), Failure> {
    for files in [disk.durable(), disk.crashed(random, 50)] {
        let recovered = done.checked(recording, &files, recording.commits())?;
        if recording.rows.get(recovered) != Some(read) {
            return Err("the power cut took back what had been read".into());
        }
    }
    Ok(())
}

/// Goes through the recording and stops at some of its points, evenly chosen.
fn at_points(
    recording: &Recording,
    points: &[usize],
    points_max: usize,
    mut stop: impl FnMut(&mut Sweep, &Disk, usize) -> Result<(), Failure>,
) -> Result<Sweep, Failure> {
    let chosen = points_max.clamp(1, points.len().max(1));
    let mut done = Sweep::default();
    let mut disk = recording.first_disk.clone();
    // No sync failed in the recording, so nothing is drawn here.
    let mut none = Random::new(0);
    let mut at = 0;
    for index in 0..chosen {
        let Some(point) = points.get(index * points.len() / chosen).copied() else {
            break;
        };
        for event in recording.events.get(at..point).unwrap_or_default() {
            disk.step(event, &mut none);
        }
        at = point;
        done.points += 1;
        stop(&mut done, &disk, point)?;
    }
    Ok(done)
}

fn seed_of(first_seed: u64, point: usize, number: usize) -> u64 {
    first_seed
        .wrapping_add(point as u64 * 1_000)
        .wrapping_add(number as u64)
}

impl Sweep {
    /// Checks an image, and what it holds of the commits acknowledged before it.
    fn add(&mut self, recording: &Recording, disk: &Disk, files: &Files) -> Result<(), Failure> {
        let acknowledged = disk.acknowledged();
        let recovered = self.checked(recording, files, acknowledged + 1)?;
        self.in_flight_kept += usize::from(recovered > acknowledged);
        let lost = acknowledged.saturating_sub(recovered);
        self.with_losses += usize::from(lost > 0);
        self.lost_max = self.lost_max.max(lost);
        Ok(())
    }

    /// Checks an image and says how many commits it holds.
    fn checked(
        &mut self,
        recording: &Recording,
        files: &Files,
        commits_max: usize,
    ) -> Result<usize, Failure> {
        self.images += 1;
        check(files, recording, commits_max)
    }
}

/// The first image keeps nothing of what waited; the others some, seeded.
fn image(disk: &Disk, number: usize, seed: u64) -> Files {
    if number == 0 {
        return disk.durable();
    }
    let kept = KEPT_PERCENT
        .get((number - 1) % KEPT_PERCENT.len())
        .copied()
        .unwrap_or(50);
    disk.crashed(&mut Random::new(seed), kept)
}

/// How many events have happened at each crash point: just before and just behind every sync, and
/// just behind every tenth write.
fn crash_points(events: &[Event]) -> Vec<usize> {
    let mut points = Vec::new();
    let mut writes = 0;
    for (index, event) in events.iter().enumerate() {
        match event {
            Event::Synced(..) => points.extend([index, index + 1]),
            Event::Written(..) => {
                writes += 1;
                if writes % WRITES_APART == 0 {
                    points.push(index + 1);
                }
            }
            _ => {}
        }
    }
    points.dedup();
    points
}

//! The n-th call fails, for n = 1, 2, 3 and so on, until a run meets no failure.
//!
//! Each run does one piece of work on a small database while its n-th call to the file system fails:
//! once, or from then on. Then:
//!
//! * what was answered holds: a success is there, a refusal is not, an `Unknown` is one of the two;
//! * what was read stays true: the database that a killed process, or a power cut, leaves at that
//!   moment shows the same;
//! * the errors say neither that the file is damaged nor what is not so;
//! * with the fault gone the same store works again, and every timer comes to its end, once.

mod base;
mod run;
mod verify;
mod work;

use std::collections::BTreeMap;
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use self::base::Base;
use crate::Failure;
use crate::fault::{Call, Cause, Fault};

/// What is done while a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Timers are scheduled, replaced, moved and cancelled, a kind is paused.
    Schedule,
    /// Due timers fire, in groups, one by one and detached; some fail, some come again.
    Tick,
    /// A database is created and migrated.
    Create,
    /// A database that a killed process left is opened.
    Recover,
    /// A store that closed over a commit it could not settle opens its file again.
    Reopen,
    /// The log is moved into the database.
    Checkpoint,
    /// A backup is written.
    Backup,
    /// The store is closed.
    Close,
}

/// Every piece of work.
pub const ALL_WORK: [Work; 8] = [
    Work::Schedule,
    Work::Tick,
    Work::Create,
    Work::Recover,
    Work::Reopen,
    Work::Checkpoint,
    Work::Backup,
    Work::Close,
];

/// The ways to fail: cause, and whether it lasts.
pub const ALL_WAYS: [(Cause, bool); 4] = [
    (Cause::Io, false),
    (Cause::Io, true),
    (Cause::NoRoom, false),
    (Cause::NoRoom, true),
];

/// What a sweep found.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Runs in which a call failed: the largest n.
    pub runs: u64,
    /// Runs whose work said so; in the others it went on regardless.
    pub refused: u64,
    /// Images that were checked.
    pub images: u64,
    /// Which calls failed first, and in how many runs.
    pub calls: BTreeMap<Call, u64>,
}

/// What one run came to.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// The calls that failed.
    pub(crate) failed: Vec<Call>,
    /// Whether the work, or a read behind it, ended in an error.
    pub(crate) refused: bool,
    pub(crate) images: u64,
    /// Whether the store had opened again before the fault was set.
    pub(crate) too_late: bool,
}

/// No work needs so many calls; a sweep that gets here would never end.
const CALLS_MAX: u64 = 20_000;

/// Sweeps one piece of work with one way to fail. Checks `images` images of each run, the one of a
/// killed process first.
///
/// # Errors
/// The first run that broke a rule.
pub fn sweep(
    work: Work,
    (cause, lasting): (Cause, bool),
    images: u64,
    first_seed: u64,
) -> Result<Swept, Failure> {
    watch_panics();
    let base = Base::new()?;
    let mut swept = Swept::default();
    for call in 1..CALLS_MAX {
        let fault = Fault {
            call,
            cause,
            lasting,
            only: None,
        };
        let before = PANICS.load(Ordering::SeqCst);
        let seed = first_seed.wrapping_add(call);
        let ran = once(&base, work, fault, images, seed)
            .map_err(|error| format!("{work:?}, {fault:?}: {error}"))?;
        if PANICS.load(Ordering::SeqCst) != before {
            return Err(format!("{work:?}, {fault:?}: something panicked").into());
        }
        let Some(first) = ran.failed.first() else {
            return Ok(swept);
        };
        swept.runs += 1;
        swept.refused += u64::from(ran.refused);
        swept.images += ran.images;
        *swept.calls.entry(*first).or_default() += 1;
    }
    Err(format!("{work:?} has not ended after {CALLS_MAX} calls").into())
}

/// A failed store opens again by itself after a second. If it was quicker than the run, the run is
/// made again: it has shown nothing.
fn once(base: &Base, work: Work, fault: Fault, images: u64, seed: u64) -> Result<Ran, Failure> {
    loop {
        let ran = run::run(base, work, fault, images, seed)?;
        if !(work == Work::Reopen && ran.failed.is_empty() && ran.too_late) {
            return Ok(ran);
        }
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts panics, on whatever thread: the store catches those of its own threads.
fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
}

//! Switching planted bugs on and off.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Mutant;

thread_local! {
    static HERE: Cell<Option<Mutant>> = const { Cell::new(None) };
    static GENERATION_BITS: Cell<Option<u32>> = const { Cell::new(None) };
}
/// The place of a bug in [`Mutant::ALL`] and 1; 0 is none.
static EVERYWHERE: AtomicUsize = AtomicUsize::new(0);

/// Plants a bug for this thread, in place of the one before; `None` takes it away.
pub fn plant(mutant: Option<Mutant>) {
    HERE.set(mutant);
}

/// Plants a bug for every thread of the process that has none of its own, for drivers with
/// threads; `None` leaves the one of the environment.
pub fn plant_in_process(mutant: Option<Mutant>) {
    let place = mutant.map_or(0, |mutant| mutant as usize + 1);
    EVERYWHERE.store(place, Ordering::Relaxed);
}

/// Whether this bug is planted here.
pub fn planted(mutant: Mutant) -> bool {
    match HERE.get() {
        Some(here) => here == mutant,
        None => match EVERYWHERE.load(Ordering::Relaxed) {
            0 => asked_for() == Some(mutant),
            place => place == mutant as usize + 1,
        },
    }
}

/// The bug that the environment plants in every thread that has none, so that any test can be run
/// against it.
#[allow(
    clippy::panic,
    reason = "a run against no bug would pass for one that did not catch it"
)]
fn asked_for() -> Option<Mutant> {
    static ASKED_FOR: OnceLock<Option<Mutant>> = OnceLock::new();
    *ASKED_FOR.get_or_init(|| {
        let name = std::env::var("DUELINE_MUTANT").ok()?;
        match name.parse() {
            Ok(mutant) => Some(mutant),
            Err(unknown) => panic!("DUELINE_MUTANT: {unknown}"),
        }
    })
}

/// Runs something on this thread with a bug planted, and plants what was there before.
pub fn with_planted<T>(mutant: Mutant, run: impl FnOnce() -> T) -> T {
    struct Before(Option<Mutant>);
    impl Drop for Before {
        fn drop(&mut self) {
            plant(self.0);
        }
    }
    let _before = Before(HERE.replace(Some(mutant)));
    run()
}

/// Lets the generations drawn on this thread count through this many bits only, 1 to 63, so
/// that two processes soon draw the same one and keys collide; `None` draws whole ones. No bug
/// by itself: guards must hold whatever is drawn.
pub fn narrow_generations(bits: Option<u32>) {
    GENERATION_BITS.set(bits.map(|bits| bits.clamp(1, 63)));
}

pub(crate) fn generation_bits() -> Option<u32> {
    GENERATION_BITS.get()
}

/// No planted bug has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMutant(pub String);

impl fmt::Display for UnknownMutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no planted bug is called {:?}", self.0)
    }
}

impl std::error::Error for UnknownMutant {}

impl FromStr for Mutant {
    type Err = UnknownMutant;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|mutant| mutant.name() == name);
        found.copied().ok_or_else(|| UnknownMutant(name.to_owned()))
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

use bytes::{BufMut, Bytes};

use super::TEST_KIND;
use crate::kinds::fuzzing::Form;
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::timers::Timer;

/// Most steps of a script.
pub const SCRIPT_STEPS_MAX: usize = 255;
const VERSION: u8 = 1;

/// For the fuzz targets.
pub(super) const SCRIPT_FORM: Form = Form {
    kind: TEST_KIND,
    letter: None,
    what: "the script of a timer of the test kind",
    reread: |payload| Ok(Script::read(payload)?.payload()),
};

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The handler ends in an error.
    Error,
    /// The handler ends in an error that has nothing to do with the timer.
    Uncharged,
    /// The handler panics.
    Panic,
    /// The handler never ends.
    Hang,
    /// The batch requires what is not so.
    LostGuard,
    /// The batch has an operation more than a handler's may have.
    TooManyOps,
    /// The batch has more bytes than any may have.
    TooManyBytes,
    /// The batch removes the timer's own row, which is not the handler's to do.
    TouchesItself,
    /// The store does not say what became of the commit: see
    /// [`TestKind::on_unknown_outcome`](super::TestKind::on_unknown_outcome).
    UnknownOutcome,
    /// The handler says that the payload does not decode.
    Undecodable,
    /// The handler schedules the timer again, a second before the due that it had.
    PastReschedule,
    /// The handler asks for the next run after this many milliseconds.
    Retry(u64),
    /// The handler gives the timer up.
    Dead,
}

impl Fault {
    fn code(self) -> (u8, u64) {
        match self {
            Self::Error => (1, 0),
            Self::Uncharged => (2, 0),
            Self::Panic => (3, 0),
            Self::Hang => (4, 0),
            Self::LostGuard => (5, 0),
            Self::TooManyOps => (6, 0),
            Self::TooManyBytes => (7, 0),
            Self::TouchesItself => (8, 0),
            Self::UnknownOutcome => (9, 0),
            Self::Undecodable => (10, 0),
            Self::PastReschedule => (11, 0),
            Self::Retry(after_ms) => (12, after_ms),
            Self::Dead => (13, 0),
        }
    }

    fn of(code: u8, argument: u64) -> Result<Self, Malformed> {
        let fault = match code {
            1 => Self::Error,
            2 => Self::Uncharged,
            3 => Self::Panic,
            4 => Self::Hang,
            5 => Self::LostGuard,
            6 => Self::TooManyOps,
            7 => Self::TooManyBytes,
            8 => Self::TouchesItself,
            9 => Self::UnknownOutcome,
            10 => Self::Undecodable,
            11 => Self::PastReschedule,
            12 => return Ok(Self::Retry(argument)),
            13 => Self::Dead,
            _ => return Err(Malformed("unknown fault")),
        };
        if argument != 0 {
            return Err(Malformed("an argument of a fault that has none"));
        }
        Ok(fault)
    }
}

/// The faults of a timer, in the order of its runs; behind the last it succeeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Script {
    steps: Vec<(Fault, u16)>,
}

impl Script {
    /// A timer that succeeds at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Then this fault, for so many runs. A script has at most 255 steps; more are left out.
    pub fn then(mut self, fault: Fault, runs: u16) -> Self {
        if self.steps.len() < SCRIPT_STEPS_MAX {
            self.steps.push((fault, runs));
        }
        self
    }

    /// The payload of a timer with this script.
    pub fn payload(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u8(VERSION);
        for (fault, runs) in &self.steps {
            let (code, argument) = fault.code();
            out.put_u8(code);
            out.put_u16(*runs);
            out.put_u64(argument);
        }
        Bytes::from(out)
    }

    /// A timer with this script, due at once: see [`Timer::new`].
    pub fn timer(&self, reference: impl Into<Bytes>) -> Timer {
        Timer::new(TEST_KIND, reference).payload(self.payload())
    }

    pub(super) fn read(payload: &Bytes) -> Result<Self, Malformed> {
        const STEP_BYTES: usize = 11;
        let mut reader = Reader::new(payload);
        if reader.u8()? != VERSION {
            return Err(Malformed("unknown version"));
        }
        let mut steps = Vec::new();
        for _ in 0..payload.len().saturating_sub(1).div_ceil(STEP_BYTES) {
            let (code, runs) = (reader.u8()?, reader.u16()?);
            steps.push((Fault::of(code, reader.u64()?)?, runs));
        }
        reader.end()?;
        if steps.len() > SCRIPT_STEPS_MAX {
            return Err(Malformed("too many steps"));
        }
        Ok(Self { steps })
    }

    /// The fault of the run behind so many, and what is left of the script behind that run.
    pub(super) fn behind(&self, runs: u64) -> (Option<Fault>, Self) {
        let mut left = runs;
        for (index, (fault, times)) in self.steps.iter().enumerate() {
            let times = u64::from(*times);
            if left < times {
                let runs_left = u16::try_from(times - left - 1).unwrap_or(u16::MAX);
                let mut steps = vec![(*fault, runs_left)];
                steps.extend(self.steps.iter().skip(index + 1));
                return (Some(*fault), Self { steps });
            }
            left -= times;
        }
        (None, Self::new())
    }
}

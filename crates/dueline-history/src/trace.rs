//! Whether two runs of one seed are the same run (I18).

use std::fmt;

use crate::Event;

/// The 64-bit FNV-1a of the history's lines, each with its line feed: what the bytes of its file hash
/// to, and the same on every machine and in every build.
pub fn trace_hash(history: &[Event]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut line = Vec::new();
    for event in history {
        line.clear();
        // Every event has a JSON form, and memory takes every line.
        let written = serde_json::to_writer(&mut line, event);
        debug_assert!(written.is_ok(), "{written:?}");
        line.push(b'\n');
        for byte in &line {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// Where two histories part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The index of the first event that differs; the length of the shorter one if it is the front of
    /// the other.
    pub at: usize,
    /// The event of the one, if it has one there.
    pub one: Option<Event>,
    /// The event of the other.
    pub other: Option<Event>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |event: &Option<Event>| match event {
            Some(event) => serde_json::to_string(event).unwrap_or_default(),
            None => "nothing".to_owned(),
        };
        let (one, other) = (text(&self.one), text(&self.other));
        write!(f, "event {}: {one} / {other}", self.at)
    }
}

/// The first event in which two histories differ; `None` if they are the same.
pub fn first_difference(one: &[Event], other: &[Event]) -> Option<Difference> {
    let length = one.len().max(other.len());
    let at = (0..length).find(|at| one.get(*at) != other.get(*at))?;
    Some(Difference {
        at,
        one: one.get(at).cloned(),
        other: other.get(at).cloned(),
    })
}

use std::fmt;

/// Which handler decodes and fires a timer.
///
/// 0 is invalid, 1 to 15 are built in, 16 to `0xEF` are the application's, `0xF0` to `0xFE` are for
/// tests, `0xFF` is the fault-injection kind. Numbers are stored: never give one a second meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKind(pub u8);

impl TimerKind {
    /// No handler can have this kind; it stands for rows too damaged to name theirs.
    pub const INVALID: Self = Self(0);
    /// The first kind of the application.
    pub const APPLICATION_FIRST: Self = Self(16);
    /// The last kind of the application.
    pub const APPLICATION_LAST: Self = Self(0xEF);

    /// Whether a handler can have this kind.
    pub fn is_valid(self) -> bool {
        self != Self::INVALID
    }
}

impl fmt::Debug for TimerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimerKind({})", self.0)
    }
}

impl fmt::Display for TimerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct KindSet([u64; 4]);

impl KindSet {
    /// A set without kinds; add some with [`insert`](Self::insert), or collect them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every kind, the invalid one included.
    pub fn all() -> Self {
        Self([u64::MAX; 4])
    }

    /// Adds a kind; one that is in the set already stays.
    pub fn insert(&mut self, kind: TimerKind) {
        if let Some(word) = self.0.get_mut(usize::from(kind.0 >> 6)) {
            *word |= 1 << (kind.0 & 63);
        }
    }

    /// Takes a kind out.
    pub fn remove(&mut self, kind: TimerKind) {
        if let Some(word) = self.0.get_mut(usize::from(kind.0 >> 6)) {
            *word &= !(1 << (kind.0 & 63));
        }
    }

    /// Whether a kind is in the set.
    pub fn contains(&self, kind: TimerKind) -> bool {
        self.0
            .get(usize::from(kind.0 >> 6))
            .is_some_and(|word| word & (1 << (kind.0 & 63)) != 0)
    }

    /// Whether no kind is in the set.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The number behind that of the last kind; 0 if no kind is in the set.
    pub(crate) fn end(&self) -> u16 {
        let ends = (1_u16..).zip(&self.0).map(|(words, word)| match word {
            0 => 0,
            word => words * 64 - word.leading_zeros() as u16,
        });
        ends.max().unwrap_or(0)
    }

    /// The kinds of the set in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = TimerKind> + '_ {
        (0..=u8::MAX)
            .map(TimerKind)
            .filter(|kind| self.contains(*kind))
    }
}

impl FromIterator<TimerKind> for KindSet {
    fn from_iter<I: IntoIterator<Item = TimerKind>>(kinds: I) -> Self {
        let mut set = Self::new();
        for kind in kinds {
            set.insert(kind);
        }
        set
    }
}

impl fmt::Debug for KindSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_ends_behind_its_last_kind() {
        assert_eq!(KindSet::new().end(), 0);
        assert_eq!(KindSet::all().end(), 256);
        for kind in 0..=u8::MAX {
            let set: KindSet = [TimerKind(kind), TimerKind(kind / 2)].into_iter().collect();
            assert_eq!(set.end(), u16::from(kind) + 1);
        }
    }
}

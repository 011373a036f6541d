use super::{Key, Value};

/// The rows to read: keys in `[start, end)`, ascending, at most `limit`, behind the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// The first key that may be returned.
    pub start: Key,
    /// The first key behind the range. At or before `start` the range is empty.
    pub end: Key,
    /// Where an earlier page of the same range ended; a cursor outside the range is `Invalid`.
    pub after: Option<Cursor>,
    /// Most rows wanted, at least 1. A store may return fewer and still carry `next`.
    pub limit: usize,
}

impl ScanRange {
    /// The range `[start, end)` from its beginning.
    pub fn new(start: impl Into<Key>, end: impl Into<Key>, limit: usize) -> Self {
        Self {
            start: start.into(),
            end: end.into(),
            after: None,
            limit,
        }
    }

    /// The same range, resumed behind a page.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }
}

/// A position in a range, opaque: may be passed back only for the range that produced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(Key);

impl Cursor {
    /// The position just behind this key. For stores.
    pub fn behind(key: Key) -> Self {
        Self(key)
    }

    /// The last key that was returned. For stores.
    pub fn position(&self) -> &Key {
        &self.0
    }
}

/// One page of rows in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPage {
    /// Keys and values in ascending order of the keys; may be fewer than the limit.
    pub rows: Vec<(Key, Value)>,
    /// Where to go on; `None` at the end of the range, an exact fit included.
    pub next: Option<Cursor>,
}

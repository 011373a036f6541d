use bytes::Bytes;

/// A key: an opaque byte string of at most 1,024 bytes. Keys order by raw bytes.
///
/// Keys whose second byte is `00` belong to the engine; application keys must not look like that.
pub type Key = Bytes;

/// A value: an opaque byte string of at most 512 KiB.
pub type Value = Bytes;

/// What must hold, at the moment of the commit, for a batch to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No row has this key.
    Absent(Key),
    /// A row has this key.
    Present(Key),
    /// The row of this key has this value.
    Equals(Key, Value),
    /// The backend's clock shows this time or an earlier one, in milliseconds since 1970.
    NotAfter(u64),
    /// The backend's clock shows this time or a later one, in milliseconds since 1970.
    NotBefore(u64),
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// The row of this key has this value from now on.
    Put(Key, Value),
    /// No row has this key from now on. Deleting an absent key is no error.
    Delete(Key),
}

impl Write {
    /// The key that is written.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }
}

/// The only write: preconditions checked in order against committed state, then puts and deletes in
/// order, atomically, in one partition. A later write to a key wins. A batch without writes is a
/// pure check.
///
/// At most 100 preconditions and writes together, and 1 MiB of keys and values.
///
/// ```
/// use dueline::store::Batch;
///
/// let batch = Batch::new().require_absent("order/42").put("order/42", "open");
/// assert_eq!(batch.ops(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Checked in list order; the first failure decides.
    pub preconditions: Vec<Precondition>,
    /// Applied in list order.
    pub writes: Vec<Write>,
    /// Whether the puts may use the capacity kept in reserve. For the engine's own moves alone: a
    /// back-off must be recorded on a full store too. The core clears it on what a handler returns.
    pub uses_reserve: bool,
}

impl Batch {
    /// A batch that requires and writes nothing, to be built up.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires that no row has this key.
    #[must_use]
    pub fn require_absent(self, key: impl Into<Key>) -> Self {
        self.require(Precondition::Absent(key.into()))
    }

    /// Requires that a row has this key.
    #[must_use]
    pub fn require_present(self, key: impl Into<Key>) -> Self {
        self.require(Precondition::Present(key.into()))
    }

    /// Requires that the row of this key has this value.
    #[must_use]
    pub fn require_equals(self, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.require(Precondition::Equals(key.into(), value.into()))
    }

    /// Requires that a row is as it was read: this value, or absent.
    #[must_use]
    pub fn require_unchanged(self, key: impl Into<Key>, observed: Option<Value>) -> Self {
        match observed {
            Some(value) => self.require_equals(key, value),
            None => self.require_absent(key),
        }
    }

    /// Adds a precondition behind those that are there.
    #[must_use]
    pub fn require(mut self, precondition: Precondition) -> Self {
        self.preconditions.push(precondition);
        self
    }

    /// Gives a row a value, new or changed.
    #[must_use]
    pub fn put(mut self, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.writes.push(Write::Put(key.into(), value.into()));
        self
    }

    /// Removes a row; it may be absent.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Key>) -> Self {
        self.writes.push(Write::Delete(key.into()));
        self
    }

    /// Adds everything another batch holds, behind what is here.
    #[must_use]
    pub fn append(mut self, other: Self) -> Self {
        self.preconditions.extend(other.preconditions);
        self.writes.extend(other.writes);
        self.uses_reserve |= other.uses_reserve;
        self
    }

    /// How many preconditions and writes the batch holds.
    pub fn ops(&self) -> usize {
        self.preconditions.len() + self.writes.len()
    }

    /// How many bytes of keys and values the batch holds; time bounds add none.
    pub fn bytes(&self) -> usize {
        let guards: usize = self
            .preconditions
            .iter()
            .map(|precondition| match precondition {
                Precondition::Absent(key) | Precondition::Present(key) => key.len(),
                Precondition::Equals(key, value) => key.len() + value.len(),
                Precondition::NotAfter(_) | Precondition::NotBefore(_) => 0,
            })
            .sum();
        let writes: usize = self
            .writes
            .iter()
            .map(|write| match write {
                Write::Put(key, value) => key.len() + value.len(),
                Write::Delete(key) => key.len(),
            })
            .sum();
        guards + writes
    }

    /// Whether the batch puts anything.
    pub fn has_put(&self) -> bool {
        self.writes
            .iter()
            .any(|write| matches!(write, Write::Put(..)))
    }

    /// Whether the batch neither requires nor writes anything.
    pub fn is_empty(&self) -> bool {
        self.preconditions.is_empty() && self.writes.is_empty()
    }
}

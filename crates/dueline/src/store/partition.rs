use std::fmt;

use bytes::Bytes;

use super::StoreError;
use crate::limits::PARTITION_BYTES_MAX;

/// The unit of atomicity and placement: an opaque byte string of 1 to 256 bytes.
///
/// One tenant, one order, one document. Everything a [`Batch`](super::Batch) touches lies in one.
///
/// ```
/// use dueline::store::Partition;
///
/// let order = Partition::new("order-42")?;
/// assert_eq!(order.as_bytes(), b"order-42");
/// assert!(Partition::new("").is_err());
/// # Ok::<(), dueline::store::StoreError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(Bytes);

impl Partition {
    /// A partition of this name.
    ///
    /// # Errors
    /// `Invalid` if the name is empty or longer than 256 bytes.
    pub fn new(name: impl Into<Bytes>) -> Result<Self, StoreError> {
        let name = name.into();
        if name.is_empty() || name.len() > PARTITION_BYTES_MAX {
            return Err(StoreError::invalid(format!(
                "a partition has 1 to {PARTITION_BYTES_MAX} bytes, this one has {}",
                name.len()
            )));
        }
        Ok(Self(name))
    }

    /// The bytes of the name, 1 to 256.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of the name as a cheap clone that outlives the partition.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partition(\"{self}\")")
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

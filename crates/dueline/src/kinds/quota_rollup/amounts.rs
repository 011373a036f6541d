use bytes::BufMut;

use crate::rows::Malformed;
use crate::rows::codec::Reader;

/// Most counters of one quota.
pub const COUNTERS_MAX: usize = 4;

/// A number for each counter of a quota, at most four, in an order that the application gives them:
/// operations and bytes, say. Made from an array; what the array leaves out is 0.
///
/// ```
/// use dueline::kinds::quota_rollup::Amounts;
///
/// let charged = Amounts::from([1, 4_096]);
/// assert_eq!(charged.as_array(), [1, 4_096, 0, 0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amounts([u64; COUNTERS_MAX]);

impl<const N: usize> From<[u64; N]> for Amounts {
    fn from(given: [u64; N]) -> Self {
        const { assert!(N <= COUNTERS_MAX, "a quota has at most four counters") };
        let mut all = [0; COUNTERS_MAX];
        for (to, from) in all.iter_mut().zip(given) {
            *to = from;
        }
        Self(all)
    }
}

impl Amounts {
    /// As a limit: no counter is limited.
    pub const UNLIMITED: Self = Self([u64::MAX; COUNTERS_MAX]);

    /// The numbers, those of counters that are not used being 0.
    pub fn as_array(&self) -> [u64; COUNTERS_MAX] {
        self.0
    }

    /// Whether every number is 0.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; COUNTERS_MAX]
    }

    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let mut all = self.0;
        for (to, from) in all.iter_mut().zip(other.0) {
            *to = join(*to, from);
        }
        Self(all)
    }

    /// The sum, each counter at most `u64::MAX`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The difference, each counter at least 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// The larger of the two of each counter.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// The first counter that is over its limit; `None` if none is.
    pub fn first_over(&self, limit: &Self) -> Option<usize> {
        let mut both = self.0.iter().zip(&limit.0);
        both.position(|(amount, limit)| amount > limit)
    }

    /// The sum, `None` if a counter would be more than `u64::MAX`.
    pub(super) fn checked_plus(self, other: Self) -> Option<Self> {
        let sum = self.plus(other);
        (sum.minus(other) == self).then_some(sum)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for amount in self.0 {
            out.put_u64(amount);
        }
    }

    pub(super) fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let mut all = [0; COUNTERS_MAX];
        for amount in &mut all {
            *amount = reader.u64()?;
        }
        Ok(Self(all))
    }
}

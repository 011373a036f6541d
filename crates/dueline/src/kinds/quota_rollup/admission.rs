use super::amounts::Amounts;
use super::quotas::QuotaUsage;

/// How much a quota allows in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What all partitions together may charge.
    pub total: Amounts,
    /// What one shard may charge while it does not know the total: its view is missing or older than
    /// two periods.
    pub local: Amounts,
}

impl Limits {
    /// Limits of the counters in their order. A counter that is left out has the limit 0, and may not
    /// be charged; one without a limit has `u64::MAX`.
    pub fn new(total: impl Into<Amounts>, local: impl Into<Amounts>) -> Self {
        Self {
            total: total.into(),
            local: local.into(),
        }
    }

    /// Whether a partition that knows this may charge these amounts more.
    pub(super) fn decide(&self, usage: &QuotaUsage, amounts: Amounts) -> Admission {
        let basis = usage.basis;
        let over_local = if basis.is_total_known() {
            None
        } else {
            usage.local.plus(amounts).first_over(&self.local)
        };
        // What is known to be used stays used, however old the knowledge.
        let over = over_local.or_else(|| usage.total.plus(amounts).first_over(&self.total));
        match over {
            None => Admission::Admitted { basis },
            Some(counter) => Admission::Refused {
                counter,
                basis,
                window_ends_at_ms: usage.window.end_ms(),
            },
        }
    }
}

/// Whether amounts are within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// They are.
    Admitted {
        /// What the decision rests on.
        basis: Basis,
    },
    /// They are not; nothing is charged.
    Refused {
        /// The first counter that would be over its limit, from 0.
        counter: usize,
        /// What the decision rests on.
        basis: Basis,
        /// When the next window begins, in milliseconds since 1970.
        window_ends_at_ms: u64,
    },
}

impl Admission {
    /// Whether the amounts are admitted.
    pub fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted { .. })
    }
}

/// What is known of a total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The total as it is kept: the partition is the coordinator. It lacks what the shards charged since
    /// they rolled up last.
    Exact,
    /// A view that was pushed at most two periods ago: the total lacks at most what the other shards
    /// charged in the last three periods.
    View {
        /// When it was taken, in milliseconds since 1970.
        observed_at_ms: u64,
    },
    /// A view that is older.
    Stale {
        /// When it was taken, in milliseconds since 1970.
        observed_at_ms: u64,
    },
    /// What was charged here alone: there was no roll-up in this window yet.
    Local,
}

impl Basis {
    fn is_total_known(&self) -> bool {
        matches!(self, Self::Exact | Self::View { .. })
    }
}

//! What the fuzz targets read. Not a part of the API.

use bytes::Bytes;

use super::row::{Row, Table};
#[cfg(feature = "test-faults")]
use super::test_kind;
use super::{
    lease_sweep, outcome_delivery, publication_recheck, quota_rollup, reservation_reconcile,
    ticket_expiry,
};
use crate::kind::TimerKind;
use crate::rows::Malformed;

/// One form of bytes that a built-in kind stores: a row of a table, or what a timer carries.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Whose it is.
    pub kind: TimerKind,
    /// The letter of its table; `None` for what a timer carries.
    pub letter: Option<u8>,
    /// What it is called in an error.
    pub what: &'static str,
    /// Reads bytes and writes again what they say.
    pub reread: fn(&Bytes) -> Result<Bytes, Malformed>,
}

impl Form {
    pub(super) const fn row<T: Row>(table: Table) -> Self {
        Self {
            kind: table.kind,
            letter: Some(table.letter),
            what: T::WHAT,
            reread: reread::<T>,
        }
    }

    pub(super) const fn payload<T: Row>(kind: TimerKind) -> Self {
        Self {
            kind,
            letter: None,
            what: T::WHAT,
            reread: reread::<T>,
        }
    }
}

fn reread<T: Row>(value: &Bytes) -> Result<Bytes, Malformed> {
    Ok(T::decode(value)?.encode())
}

/// Every form of every kind.
pub fn forms() -> impl Iterator<Item = &'static Form> {
    [
        lease_sweep::FORMS,
        ticket_expiry::FORMS,
        quota_rollup::FORMS,
        outcome_delivery::FORMS,
        reservation_reconcile::FORMS,
        publication_recheck::FORMS,
        #[cfg(feature = "test-faults")]
        test_kind::FORMS,
    ]
    .into_iter()
    .flatten()
}

//! Reservations: reserve, then commit or abort, or be abandoned at the deadline; never two of them.
//!
//! For two-phase work: stock that is set aside while a payment is made, an upload that is announced and
//! then arrives, a booking that waits for its ticket. Whoever reserves need not come back: the deadline
//! settles what nobody has settled.
//!
//! # States
//! ```text
//!                commit, up to the latest commit
//!            +-----------------------------------> committed --+
//!   reserve  |   abort, at any time                            |  kept for the retention,
//!   ------> pending ----------------------------> aborted   ---+  or until it is forgotten
//!            | ^ |  nobody, by the deadline                    |  -------------------------> gone
//!            +-+ +-------------------------------> abandoned --+
//!           extend
//! ```
//! * **One end.** Every end is guarded by the pending row, byte for byte, so of two that were planned one
//!   loses; a row that has ended is never replaced.
//! * **The deadline** is the latest legal commit and the skew: how far the clocks of those who commit may
//!   be apart. A commit holds only up to the latest commit by the store's clock, an abandonment only from
//!   the deadline on; between the two lies nothing but aborts. Nothing happens a millisecond early.
//! * **Told once.** With an outbox an end is told in the batch that writes it. What else an end is to write
//!   in the partition the caller appends; for an abandonment, [`OnAbandon`] does.
//! * **Retention.** The row of an end stays for as long as the [`Terms`] say, so that a late caller is told
//!   how it ended, and is removed by the same timer. Without a retention it stays until
//!   [`Reservations::plan_forget`]; with one of 0 it goes with the end, and a late caller is told
//!   `Missing`.
//! * **Middle states** are details of the caller's: [`Reservations::plan_extend`] replaces them and moves
//!   the deadline, under the same guards.
//!
//! ```
//! use std::sync::Arc;
//! use dueline::kinds::reservation_reconcile::{End, ReservationId, Reservations, Settlement, Terms};
//! use dueline::memory::MemoryStore;
//! use dueline::store::{Batch, NamespaceStore, Partition};
//! use dueline::timers::{Engine, Registry, TickBudget, Timers, run_due};
//! use dueline_testkit::{ManualClock, block_on, test_runtime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::new(1_000);
//! let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
//! let runtime = test_runtime(&clock);
//! let reservations = Reservations::new(Timers::new(store.clone(), runtime.clone()));
//! let (kind, registration) = reservations.entry();
//! let engine = Engine::new(store.clone(), runtime, Registry::new().with(kind, registration)?);
//! let show = Partition::new("show-7")?;
//! let terms = Terms::commit_within_ms(600_000).detail("order-42");
//!
//! block_on(async {
//!     // The seat and its reservation are one batch.
//!     let (first, second) = (ReservationId::new("seat-12A")?, ReservationId::new("seat-12B")?);
//!     let a = reservations.plan_reserve(&first, &terms)?;
//!     let b = reservations.plan_reserve(&second, &terms)?;
//!     let (serial_a, serial_b) = (a.outcome.serial, b.outcome.serial);
//!     let taken = Batch::new().put("free-seats", "98").append(a.batch).append(b.batch);
//!     assert!(store.apply(&show, taken).await?.is_committed());
//!
//!     let paid = reservations.commit(&show, &first, serial_a).await?;
//!     assert!(matches!(paid, Settlement::Settled(_)));
//!
//!     // Nobody pays for the other: ten minutes and the skew later it is abandoned.
//!     clock.advance_ms(601_000);
//!     let _ = run_due(&engine, &show, TickBudget::default()).await;
//!     let Settlement::EndedBefore(late) = reservations.commit(&show, &second, serial_b).await? else {
//!         panic!("a late commit loses");
//!     };
//!     assert_eq!(late.end(), Some(&End::Abandoned));
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # Rows
//! `r` + id: the reservation. See `FORMAT.md`. Its one timer carries the serial and finds a moved deadline
//! by itself, so no timer is ever stale but that of a reservation that was forgotten.
//!
//! # Costs
//! See `docs/kinds/reservation_reconcile.md`; counted by the suite over 10,000 reservations.
//!
//! # Limits
//! An id has 1 to 96 bytes, a detail at most 32 KiB, a reason at most 255 bytes. A batch may end one
//! reservation of an outbox; one of two is refused as `Invalid`.

mod ending;
mod handler;
mod planners;
mod reservation;
mod rows;

pub use ending::OnAbandon;
pub use planners::{Forgotten, Reservations, Reserved, Settlement};
pub use reservation::{End, Reservation, ReservationId, ReservationState, Terms};
pub(super) use rows::FORMS;

use crate::kind::TimerKind;
use crate::kinds::outcome_delivery::OUTCOME_BODY_BYTES_MAX;

/// The kind of the timer that arbitrates one reservation.
pub const RESERVATION_RECONCILE: TimerKind = TimerKind(9);
/// Longest id of a reservation, in bytes.
pub const RESERVATION_ID_BYTES_MAX: usize = 96;
/// Longest detail of a reservation, in bytes (32 KiB).
pub const RESERVATION_DETAIL_BYTES_MAX: usize = 32 * 1_024;
/// Longest reason of an abort, in bytes.
pub const RESERVATION_REASON_BYTES_MAX: usize = 255;

// A message in JSON may write each byte as six, and every end has to fit into its outbox.
const _: () = assert!(
    6 * (RESERVATION_DETAIL_BYTES_MAX + RESERVATION_ID_BYTES_MAX + RESERVATION_REASON_BYTES_MAX)
        + 1_024
        <= OUTCOME_BODY_BYTES_MAX
);

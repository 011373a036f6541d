use bytes::{BufMut, Bytes};

use super::window::{WINDOW_MS_MAX, Window};
use crate::kinds::row::Row;
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::Partition;

/// Where a window's timer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The coordinator absorbs what was charged, again and again.
    Rolling,
    /// Everything is absorbed; the rows go, those of the coordinator first.
    Closing,
}

/// The payload of a window's timer, `version:u8 phase:u8 period_ms:u64 coordinator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) phase: Phase,
    pub(super) period_ms: u64,
    pub(super) coordinator: Partition,
}

impl Job {
    pub(super) fn in_phase(&self, phase: Phase) -> Bytes {
        Self {
            phase,
            ..self.clone()
        }
        .encode()
    }

    /// A window that no quota has.
    pub(super) fn check(&self, window: Window) -> Result<(), Malformed> {
        if window.length_ms == 0 || window.length_ms > WINDOW_MS_MAX {
            return Err(Malformed("a window of no legal length"));
        }
        Ok(())
    }
}

impl Row for Job {
    const WHAT: &'static str = "the payload of a roll-up";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u8(match self.phase {
            Phase::Rolling => 1,
            Phase::Closing => 2,
        });
        out.put_u64(self.period_ms);
        out.put_slice(self.coordinator.as_bytes());
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let phase = match reader.u8()? {
            1 => Phase::Rolling,
            2 => Phase::Closing,
            _ => return Err(Malformed("unknown phase")),
        };
        let period_ms = reader.u64()?;
        let coordinator = Partition::new(reader.rest());
        Ok(Self {
            phase,
            period_ms,
            coordinator: coordinator.map_err(|_| Malformed("no partition"))?,
        })
    }
}

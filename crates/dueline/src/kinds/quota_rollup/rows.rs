use bytes::{BufMut, Bytes};

use super::QUOTA_ROLLUP;
use super::amounts::Amounts;
use super::job::Job;
use super::window::Window;
use crate::kinds::fuzzing::Form;
use crate::kinds::row::{Row, Table};
use crate::rows::Malformed;
use crate::rows::codec::Reader;
use crate::store::{Key, Partition, ScanRange};

/// Longest name of a quota, in bytes.
pub const QUOTA_NAME_BYTES_MAX: usize = 64;
/// How much earlier than one that closes a window began whose rows count as left behind, in milliseconds.
/// Closing takes two minutes; the rest is for shards that are late.
const LEFT_BEHIND_MS: u64 = 10 * 60_000;

/// What was charged on a shard: `62 00 05 75`, then the window.
pub(super) const USAGE: Table = Table::new(QUOTA_ROLLUP, b'u');
/// What a shard knows of the total: `62 00 05 76`, then the window.
pub(super) const VIEW: Table = Table::new(QUOTA_ROLLUP, b'v');
/// What the coordinator has absorbed of a shard: `62 00 05 63`, then the window and the shard.
pub(super) const CONTRIBUTION: Table = Table::new(QUOTA_ROLLUP, b'c');
/// The total at the coordinator: `62 00 05 74`, then the window.
pub(super) const TOTAL: Table = Table::new(QUOTA_ROLLUP, b't');

/// What is stored, for the fuzz targets.
pub(in crate::kinds) const FORMS: &[Form] = &[
    Form::row::<Usage>(USAGE),
    Form::row::<View>(VIEW),
    Form::row::<Contribution>(CONTRIBUTION),
    Form::row::<Total>(TOTAL),
    Form::payload::<Job>(QUOTA_ROLLUP),
    Form {
        kind: QUOTA_ROLLUP,
        letter: None,
        what: "the reference of a roll-up",
        reread: |reference| Ok(Place::of_reference(reference)?.reference()),
    },
];

/// The window of one quota: what its rows are found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: Bytes,
    pub(super) window: Window,
}

impl Place {
    /// The key of the window in a table, with what tells rows of one window apart. Windows of one length
    /// order by their start.
    pub(super) fn key(&self, table: Table, rest: &[u8]) -> Key {
        let len = u8::try_from(self.name.len()).unwrap_or(u8::MAX);
        let Window {
            length_ms,
            start_ms,
        } = self.window;
        let (length, start) = (length_ms.to_be_bytes(), start_ms.to_be_bytes());
        table.key(&[&[len], &self.name, &length, &start, rest])
    }

    pub(super) fn contribution(&self, shard: &Partition) -> Key {
        self.key(CONTRIBUTION, shard.as_bytes())
    }

    /// The rows of a table that belong to windows of this quota and length whose shards should have been
    /// done long ago. Windows that are shorter than their closing takes overlap: those that began just
    /// before this one are not left behind.
    pub(super) fn older(&self, table: Table, limit: usize) -> ScanRange {
        let start_of = |start_ms| {
            let window = Window {
                start_ms,
                ..self.window
            };
            let name = self.name.clone();
            Self { name, window }.key(table, &[])
        };
        let end_ms = self.window.start_ms.saturating_sub(LEFT_BEHIND_MS);
        ScanRange::new(start_of(0), start_of(end_ms), limit)
    }

    /// The reference of the window's timer: `length:u64 start:u64 name`.
    pub(super) fn reference(&self) -> Bytes {
        let mut reference = Vec::with_capacity(16 + self.name.len());
        reference.put_u64(self.window.length_ms);
        reference.put_u64(self.window.start_ms);
        reference.put_slice(&self.name);
        Bytes::from(reference)
    }

    pub(super) fn of_reference(reference: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(reference);
        let length_ms = reader.u64()?;
        let start_ms = reader.u64()?;
        let name = reader.rest();
        if name.is_empty() || name.len() > QUOTA_NAME_BYTES_MAX {
            return Err(Malformed("the name of a quota has another length"));
        }
        if start_ms
            .checked_rem(length_ms)
            .is_some_and(|rest| rest != 0)
        {
            return Err(Malformed("no window begins there"));
        }
        Ok(Self {
            name,
            window: Window {
                length_ms,
                start_ms,
            },
        })
    }
}

/// What was charged on a shard in a window, `version:u8 charged:4*u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage(pub(super) Amounts);

impl Row for Usage {
    const WHAT: &'static str = "the usage of a shard";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let charged = Amounts::take(&mut reader)?;
        reader.end()?;
        Ok(Self(charged))
    }
}

/// What a shard knows of the total, `version:u8 observed_at_ms:u64 total:4*u64 pushed:4*u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// When the total was read.
    pub(super) observed_at_ms: u64,
    /// The total then, what the shard had pushed included.
    pub(super) total: Amounts,
    /// What the shard had pushed.
    pub(super) pushed: Amounts,
}

impl Row for View {
    const WHAT: &'static str = "a shard's view of the total";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u64(self.observed_at_ms);
        self.total.put(out);
        self.pushed.put(out);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let view = Self {
            observed_at_ms: reader.u64()?,
            total: Amounts::take(&mut reader)?,
            pushed: Amounts::take(&mut reader)?,
        };
        reader.end()?;
        Ok(view)
    }
}

/// What the coordinator has absorbed of a shard, `version:u8 absorbed:4*u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contribution(pub(super) Amounts);

impl Row for Contribution {
    const WHAT: &'static str = "what was absorbed of a shard";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let absorbed = Amounts::take(&mut reader)?;
        reader.end()?;
        Ok(Self(absorbed))
    }
}

/// The total of a window, `version:u8 is_charged:u8 shards:u64 absorbed:4*u64 charged:4*u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    /// Whether the coordinator itself was charged, and so has a timer for the window.
    pub(super) is_charged: bool,
    /// How many shards have a contribution.
    pub(super) shards: u64,
    /// The sum of the contributions.
    pub(super) absorbed: Amounts,
    /// What was charged on the coordinator itself.
    pub(super) charged: Amounts,
}

impl Total {
    pub(super) fn sum(&self) -> Amounts {
        self.absorbed.plus(self.charged)
    }

    /// The total when one of those who keep it is gone, a shard or the coordinator itself; the amounts
    /// stay in it. `None` if nobody is left who will ask for it.
    pub(super) fn without(mut self, shard: bool) -> Option<Self> {
        if shard {
            self.shards = self.shards.saturating_sub(1);
        } else {
            self.is_charged = false;
        }
        (self.shards > 0 || self.is_charged).then_some(self)
    }
}

impl Row for Total {
    const WHAT: &'static str = "the total of a quota";

    fn encode_fields(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(self.is_charged));
        out.put_u64(self.shards);
        self.absorbed.put(out);
        self.charged.put(out);
    }

    fn decode_fields(mut reader: Reader) -> Result<Self, Malformed> {
        let total = Self {
            is_charged: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed("unknown flags")),
            },
            shards: reader.u64()?,
            absorbed: Amounts::take(&mut reader)?,
            charged: Amounts::take(&mut reader)?,
        };
        reader.end()?;
        Ok(total)
    }
}

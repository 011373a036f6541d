use bytes::{BufMut, Bytes};

use crate::kinds::fuzzing::Form;
use crate::kinds::outcome_delivery::{OUTCOME_BODY_BYTES_MAX, OUTCOME_DELIVERY, Outcome};
use crate::limits::KEY_BYTES_MAX;
use crate::rows::codec::Reader;
use crate::rows::{Malformed, is_reserved};
use crate::store::{Key, Partition, StoreError, Value, Write};

/// Most puts and deletes of one [`RelayMessage`].
pub const RELAY_WRITES_MAX: usize = 90;

const VERSION: u8 = 1;
const PUT: u8 = 1;
const DELETE: u8 = 2;

/// For the fuzz targets.
pub(in super::super) const MESSAGE_FORM: Form = Form {
    kind: OUTCOME_DELIVERY,
    letter: None,
    what: "a message of a relay",
    reread: |body| {
        let (target, writes) = decode(body)?;
        let message = RelayMessage {
            target,
            writes: writes?,
        };
        let outcome = message.outcome(Bytes::new());
        outcome
            .map(|outcome| outcome.body)
            .map_err(|_| Malformed("a message that cannot be sent"))
    },
};

/// What a relay applies to another partition: puts and deletes in order, all of them or none.
///
/// ```
/// use dueline::kinds::outcome_delivery::RelayMessage;
/// use dueline::store::Partition;
///
/// let message = RelayMessage::to(Partition::new("account-7")?).put("balance", "12").delete("hold");
/// let outcome = message.outcome("transfer-42")?;
/// assert_eq!(outcome.id, "transfer-42");
/// # Ok::<(), dueline::store::StoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RelayMessage {
    target: Partition,
    writes: Vec<Write>,
}

impl RelayMessage {
    /// A message to this partition, without writes.
    pub fn to(target: Partition) -> Self {
        Self {
            target,
            writes: Vec::new(),
        }
    }

    /// Gives a row of the target a value.
    pub fn put(mut self, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.writes.push(Write::Put(key.into(), value.into()));
        self
    }

    /// Removes a row of the target.
    pub fn delete(mut self, key: impl Into<Key>) -> Self {
        self.writes.push(Write::Delete(key.into()));
        self
    }

    /// The partition it goes to.
    pub fn target(&self) -> &Partition {
        &self.target
    }

    /// The message as an outcome to be appended to a relay's outbox.
    ///
    /// # Errors
    /// `Invalid` for more than 90 writes, a key over 1,024 bytes or one of the engine's (its second byte
    /// is 0), or a message over 256 KiB.
    pub fn outcome(&self, id: impl Into<Bytes>) -> Result<Outcome, StoreError> {
        Ok(Outcome {
            id: id.into(),
            body: self.encode()?,
        })
    }

    fn encode(&self) -> Result<Bytes, StoreError> {
        if self.writes.len() > RELAY_WRITES_MAX {
            return Err(StoreError::invalid(format!(
                "a message of a relay has at most {RELAY_WRITES_MAX} writes, this one has {}",
                self.writes.len()
            )));
        }
        let target = self.target.as_bytes();
        let mut body = Vec::new();
        body.put_u8(VERSION);
        body.put_u16(u16::try_from(target.len()).unwrap_or(0));
        body.put_slice(target);
        for write in &self.writes {
            let key = write.key();
            check_key(key).map_err(|malformed| StoreError::invalid(malformed.0))?;
            body.put_u8(if matches!(write, Write::Put(..)) {
                PUT
            } else {
                DELETE
            });
            body.put_u16(u16::try_from(key.len()).unwrap_or(0));
            body.put_slice(key);
            if let Write::Put(_, value) = write {
                body.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
                body.put_slice(value);
            }
            if body.len() > OUTCOME_BODY_BYTES_MAX {
                return Err(StoreError::invalid(format!(
                    "a message of a relay has at most {OUTCOME_BODY_BYTES_MAX} bytes"
                )));
            }
        }
        Ok(Bytes::from(body))
    }
}

fn check_key(key: &Key) -> Result<(), Malformed> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Malformed("a key is over 1,024 bytes"));
    }
    if is_reserved(key) {
        return Err(Malformed("a key is one of the engine's"));
    }
    Ok(())
}

/// Reads the target of a message, and its writes if they decode: a message whose target is known holds up
/// that target alone.
pub(super) fn decode(
    body: &Bytes,
) -> Result<(Partition, Result<Vec<Write>, Malformed>), Malformed> {
    let mut reader = Reader::new(body);
    if reader.u8()? != VERSION {
        return Err(Malformed("unknown version"));
    }
    let len = usize::from(reader.u16()?);
    let target = Partition::new(reader.bytes(len)?)
        .map_err(|_| Malformed("the target is not the name of a partition"))?;
    Ok((target, writes(reader)))
}

fn writes(mut reader: Reader) -> Result<Vec<Write>, Malformed> {
    let mut writes = Vec::new();
    while !reader.is_empty() {
        if writes.len() == RELAY_WRITES_MAX {
            return Err(Malformed("too many writes"));
        }
        let op = reader.u8()?;
        let key_len = usize::from(reader.u16()?);
        let key = reader.bytes(key_len)?;
        check_key(&key)?;
        writes.push(match op {
            PUT => {
                let value_len = usize::try_from(reader.u32()?).unwrap_or(usize::MAX);
                Write::Put(key, reader.bytes(value_len)?)
            }
            DELETE => Write::Delete(key),
            _ => return Err(Malformed("unknown write")),
        });
    }
    Ok(writes)
}

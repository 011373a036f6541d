//! What the application brings along: who is told, who is asked.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::lease_sweep::{Drain, Lease, LeaseSource};
use dueline::kinds::outcome_delivery::{Delivery, Sink, SinkError};
use dueline::kinds::publication_recheck::{Dependency, Gate, Gated, GatedRecord};
use dueline::kinds::ticket_expiry::{SessionAbort, Ticket};
use dueline::store::{Batch, Key, Partition, Value};
use dueline::timers::{HandlerError, TimerCtx};

/// A delivery that was taken: its outbox and the outcome.
pub(super) type Taken = (Bytes, Bytes, Bytes);

/// Takes every outcome but one whose id says otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver(pub(super) Arc<Mutex<Vec<Taken>>>);

impl Sink for Receiver {
    fn deliver<'a>(&'a self, it: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
        let answer = match it.id.first() {
            Some(b'!') => Err(SinkError::refused("it says so")),
            Some(b'?') => Err(SinkError::failed("it says so")),
            _ => {
                let taken = (it.outbox.as_bytes().clone(), it.id.clone(), it.body.clone());
                self.0.lock().expect("no panic").push(taken);
                Ok(())
            }
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Work of every holder is left at first.
pub(super) struct SomeWork;

impl LeaseSource for SomeWork {
    fn drain<'a>(
        &'a self,
        _: &'a Partition,
        lease: &'a Lease,
    ) -> BoxFuture<'a, Result<Drain, HandlerError>> {
        let drain = if lease.watermark == 0 {
            Drain::Working { watermark: 7 }
        } else {
            Drain::Drained
        };
        Box::pin(std::future::ready(Ok(drain)))
    }
}

pub(super) struct Aborted;

impl SessionAbort for Aborted {
    fn abort<'a>(
        &'a self,
        _: &'a Partition,
        _: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A record depends on rows of its name, one beside it and two elsewhere.
pub(super) struct Press;

/// The key of a record's `which`, "out" for where it is released to.
pub(super) fn key_beside(which: &str, record: &[u8]) -> Key {
    Key::from([which.as_bytes(), b"/", record].concat())
}

pub(super) fn dependencies(record: &[u8]) -> [Dependency; 3] {
    [("p", "near"), ("t", "far"), ("t", "further")].map(|(partition, which)| Dependency {
        partition: Partition::new(partition).expect("a name"),
        key: key_beside(which, record),
    })
}

impl Gate for Press {
    fn gated(&self, record: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
        Ok(Some(Gated {
            generation: 1,
            obligations: Bytes::new(),
            is_obliged: false,
            dependencies: dependencies(&record.key).to_vec(),
        }))
    }

    fn is_visible(&self, _: &Dependency, row: Option<&Value>) -> bool {
        row.is_some()
    }

    fn release<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        record: &'a GatedRecord,
    ) -> BoxFuture<'a, Result<Batch, HandlerError>> {
        let batch = Batch::new()
            .delete(record.key.clone())
            .put(key_beside("out", &record.key), record.value.clone());
        Box::pin(std::future::ready(Ok(batch)))
    }
}

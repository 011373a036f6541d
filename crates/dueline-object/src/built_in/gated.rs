//! Gated records: `dueline::kinds::publication_recheck`.
//!
//! A record is a row of the store: behind [`RECORDS`] its name, and as its value what it waits for, as the
//! host has written it. So whatever changes a record takes the guard of a release that was planned before.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dueline::BoxFuture;
use dueline::kinds::publication_recheck::{
    Dependency, Gate, Gated, GatedRecord, PublicationRecheck, Rechecks,
};
use dueline::store::{Batch, Key, Partition, ReadStore, ScanPage, ScanRange, StoreError, Value};
use dueline::timers::{HandlerError, Registration, TimerCtx, TimerKind, Timers};
use js_sys::{Array, JSON, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

use super::change::committed;
use super::hooks::Hooks;
use crate::object::ObjectCore;
use crate::outcome::Scheduling;
use crate::records::Record;

/// In front of the name of a record. No key of the engine begins like this.
const RECORDS: &str = "gated/";
/// In front of the name of a place, so that none is this object's own partition.
const PLACES: &str = "@";

pub(super) fn entry(hooks: &Hooks, timers: &Timers) -> (TimerKind, Registration) {
    let gate = PublicationRecheck::new(HostGate(hooks.clone()), timers.clone());
    gate.reads(Arc::new(Places(hooks.clone()))).entry()
}

fn key_of(record: &str) -> Key {
    Bytes::from([RECORDS, record].concat())
}

/// What a record waits for: a list of places and keys.
struct HostGate(Hooks);

impl Gate for HostGate {
    fn gated(&self, record: &GatedRecord) -> Result<Option<Gated>, HandlerError> {
        let dependencies = dependencies(&record.value)
            .ok_or_else(|| HandlerError::new("what the record waits for does not decode"))?;
        Ok(Some(Gated {
            generation: 0,
            obligations: Bytes::new(),
            is_obliged: false,
            dependencies,
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
        Box::pin(async move {
            let name = record.key.get(RECORDS.len()..).unwrap_or_default();
            let told = Record::new().bytes("record", name).done();
            let effects = self.0.effects("gated.release", told).await?;
            Ok(effects.delete(record.key.clone()))
        })
    }
}

/// `[[place, key], ..]` as JSON.
fn dependencies(value: &Value) -> Option<Vec<Dependency>> {
    let text = std::str::from_utf8(value).ok()?;
    let listed = JSON::parse(text).ok()?.dyn_into::<Array>().ok()?;
    let listed = listed.iter().map(|pair| {
        let pair = pair.dyn_into::<Array>().ok()?;
        let place = [PLACES, &pair.get(0).as_string()?].concat();
        Some(Dependency {
            partition: Partition::new(place).ok()?,
            key: Key::from(pair.get(1).as_string()?),
        })
    });
    listed.collect()
}

/// Where dependencies lie: the host is asked which are visible, and such a one has an empty row.
struct Places(Hooks);

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Places")
    }
}

impl Places {
    async fn look(&self, place: &Partition, keys: &[Key]) -> Result<Vec<bool>, StoreError> {
        let place = place.as_bytes().get(PLACES.len()..).unwrap_or_default();
        let keys: Array = keys.iter().map(|key| Uint8Array::from(&**key)).collect();
        let asked = Record::new()
            .bytes("place", place)
            .with("keys", keys)
            .done();
        let answer = self.0.ask("gated.look", asked).await;
        let answer = answer.map_err(|error| StoreError::unavailable(error.text().to_owned()))?;
        let visible: Array = answer.unchecked_into();
        Ok(visible
            .iter()
            .map(|is_visible| is_visible.is_truthy())
            .collect())
    }
}

impl ReadStore for Places {
    fn get<'a>(
        &'a self,
        place: &'a Partition,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move {
            let found = self.get_many(place, std::slice::from_ref(key)).await?;
            Ok(found.into_iter().next().flatten())
        })
    }

    fn get_many<'a>(
        &'a self,
        place: &'a Partition,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, StoreError>> {
        Box::pin(async move {
            let visible = self.look(place, keys).await?;
            let rows = visible.into_iter();
            Ok(rows.map(|is_visible| is_visible.then(Value::new)).collect())
        })
    }

    fn scan<'a>(
        &'a self,
        _: &'a Partition,
        _: &'a ScanRange,
    ) -> BoxFuture<'a, Result<ScanPage, StoreError>> {
        Box::pin(async { Err(StoreError::unsupported("places are not scanned")) })
    }
}

#[wasm_bindgen]
impl ObjectCore {
    /// Adds a record, or puts it in the place of the one of this name. Of nothing.
    #[wasm_bindgen(js_name = gatedAdd)]
    pub fn gated_add(&self, record: String, waits_for: Vec<u8>, effects: Option<f64>) -> Promise {
        let waits_for = Bytes::from(waits_for);
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { timers, partition }| {
                    let (key, value) = (key_of(&record), waits_for.clone());
                    Box::pin(async move {
                        let looks = Rechecks::new(timers).plan(&partition, &key).await?;
                        let batch = Batch::new().put(key, value).append(looks.batch);
                        Ok((batch, JsValue::UNDEFINED))
                    })
                },
            )
        })
    }

    /// Of whether the record waited.
    #[wasm_bindgen(js_name = gatedRemove)]
    pub fn gated_remove(&self, record: String, effects: Option<f64>) -> Promise {
        self.verb(move |scheduling| {
            committed(
                scheduling,
                effects,
                move |Scheduling { timers, partition }| {
                    let key = key_of(&record);
                    Box::pin(async move {
                        let found = timers.store().get(&partition, &key).await?;
                        let mut batch = Batch::new();
                        if found.is_some() {
                            batch = batch.require_present(key.clone()).delete(key);
                        }
                        Ok((batch, JsValue::from_bool(found.is_some())))
                    })
                },
            )
        })
    }

    /// Of whether the record waits: it is looked at now.
    #[wasm_bindgen(js_name = gatedLookNow)]
    pub fn gated_look_now(&self, record: String) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let key = key_of(&record);
                // The timer of one that was removed goes at its next look.
                let waits = timers.store().get(&partition, &key).await?.is_some()
                    && Rechecks::new(timers).look_now(&partition, &key).await?;
                Ok(JsValue::from_bool(waits))
            })
        })
    }

    /// Of what a record waits for as it was given, or `undefined`.
    #[wasm_bindgen(js_name = gatedGet)]
    pub fn gated_get(&self, record: String) -> Promise {
        self.verb(move |Scheduling { timers, partition }| {
            Box::pin(async move {
                let found = timers.store().get(&partition, &key_of(&record)).await?;
                let shown = found.map(|value| JsValue::from(Uint8Array::from(&*value)));
                Ok(shown.unwrap_or(JsValue::UNDEFINED))
            })
        })
    }
}

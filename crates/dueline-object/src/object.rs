//! One object: opened, looked at, served.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use dueline::sql::SizeLimit;
use dueline::store::Partition;
use dueline::timers::{Registry, TickBudget, TimerError, Timers};
use dueline_worker::{AlarmInfo, ObjectDriver, ObjectOptions, ObjectStorage, Restored, Start};
use js_sys::{Array, JsString, Promise};
use wasm_bindgen::prelude::*;

use crate::clocks::runtime;
use crate::errors::{thrown_alarm_error, thrown_store_error, thrown_timer_error};
use crate::handler::HostHandler;
use crate::kinds::Kinds;
use crate::outcome::{Scheduling, time_of};
use crate::platform::{Host, KindOptions, ObjectSettings, Storage};
use crate::records::{Record, alarm_report};
use crate::storage::PlatformStorage;
use crate::tasks::promise;

/// The partition of everything that the package schedules.
const PARTITION: &str = "object";

/// The timers of one Durable Object.
///
/// What returns a promise is polled by the host ([`poll_task`](crate::tasks::poll_task)).
#[wasm_bindgen]
#[derive(Debug)]
pub struct ObjectCore {
    pub(crate) driver: ObjectDriver,
    pub(crate) scheduling: Scheduling,
    pub(crate) host: Host,
    /// What the verbs of the built-in kinds are made of.
    #[cfg(feature = "kinds")]
    pub(crate) built_ins: Option<crate::built_in::BuiltIns>,
    kinds: Kinds,
}

#[wasm_bindgen]
impl ObjectCore {
    /// Opens the timers of an object: creates or migrates its tables, allots kinds to new names, sets the
    /// alarm if it is missing. A promise of an `ObjectCore`.
    pub fn open(storage: Storage, host: Host, kinds: &Array, settings: ObjectSettings) -> Promise {
        let kinds: Vec<KindOptions> = kinds.iter().map(JsCast::unchecked_into).collect();
        let on = host.clone();
        promise(
            &on,
            Box::pin(async move {
                let core = Self::opened(storage, host, &kinds, &settings).await?;
                // What is missing here is looked for again by the next request.
                let _ = core.driver.restore().await;
                core.driver
                    .requeue_undecodable()
                    .await
                    .map_err(|error| thrown_timer_error(&error))?;
                Ok(core.into())
            }),
        )
    }

    /// Serves the alarm. A promise of a report.
    pub fn alarm(&self, retry_count: u32, is_retry: bool, scheduled_at: Option<f64>) -> Promise {
        let driver = self.driver.clone();
        let info = AlarmInfo {
            retry_count,
            is_retry,
            scheduled_at_ms: scheduled_at.map(time_of),
        };
        promise(
            &self.host,
            Box::pin(async move {
                let report = driver.on_alarm(info).await;
                let report = report.map_err(|error| thrown_alarm_error(&error))?;
                Ok(alarm_report(&report))
            }),
        )
    }

    /// Whether the alarm that the platform has just told is as it should be; if not, `restore` looks closer.
    #[wasm_bindgen(js_name = isAlarmSound)]
    pub fn is_alarm_sound(&self, found: Option<f64>) -> bool {
        self.driver.is_alarm_sound(found.map(time_of))
    }

    /// Sets the alarm if it is missing or late. A promise of whether it was.
    pub fn restore(&self) -> Promise {
        let driver = self.driver.clone();
        promise(
            &self.host,
            Box::pin(async move {
                let restored = driver.restore().await;
                let restored = restored.map_err(|error| thrown_alarm_error(&error))?;
                Ok(JsValue::from_bool(matches!(restored, Restored::Set { .. })))
            }),
        )
    }

    /// The numbers of all kinds that ever had a handler here, by their names.
    #[wasm_bindgen(js_name = kindNumbers)]
    pub fn kind_numbers(&self) -> JsValue {
        let mut record = Record::new();
        for (name, kind) in self.kinds.iter() {
            record = record.named(&JsString::from(name), f64::from(kind.0));
        }
        record.done()
    }
}

impl ObjectCore {
    async fn opened(
        storage: Storage,
        host: Host,
        wanted: &[KindOptions],
        settings: &ObjectSettings,
    ) -> Result<Self, JsValue> {
        let partition = Partition::new(PARTITION).map_err(|error| thrown_store_error(&error))?;
        let runtime = runtime(&host);
        let clock = Arc::clone(runtime.clock());
        let storage: Arc<dyn ObjectStorage> =
            Arc::new(PlatformStorage::new(storage, host.clone(), clock));
        let known = Rc::new(OnceCell::new());
        let handler = HostHandler::new(host.clone(), Rc::clone(&known));
        let mut kinds = Kinds::default();
        let registry = async |timers: &Timers| -> Result<Registry, TimerError> {
            kinds = Kinds::allot(timers, &partition, wanted).await?;
            let registry = kinds.registry(wanted, &handler)?;
            #[cfg(feature = "kinds")]
            let registry = crate::built_in::register(registry, settings, timers, &host)?;
            Ok(registry)
        };
        let start = if settings.is_after_trap() {
            Start::AfterTrap
        } else {
            Start::Fresh
        };
        let options = options_of(settings, wanted.len());
        let driver = ObjectDriver::open_with(storage, runtime, registry, start, options)
            .await
            .map_err(|error| thrown_timer_error(&error))?;
        let scheduling = Scheduling {
            timers: driver.timers().clone(),
            partition,
        };
        // Set once: the cell is new.
        let _ = known.set(scheduling.clone());
        Ok(Self {
            driver,
            scheduling,
            host,
            #[cfg(feature = "kinds")]
            built_ins: settings.built_ins(),
            kinds,
        })
    }
}

/// Without a word about it each of the kinds has an equal share of a tick: the only kind of an object has
/// all of it, since nobody else waits.
fn options_of(settings: &ObjectSettings, kinds: usize) -> ObjectOptions {
    let default = ObjectOptions::default();
    let max_fired = settings.max_fired().unwrap_or(default.budget.max_fired);
    let kinds = u32::try_from(kinds).unwrap_or(u32::MAX);
    let share = max_fired.div_ceil(kinds.max(1));
    let share = share.max(default.budget.max_per_kind);
    let budget = TickBudget {
        max_fired,
        max_per_kind: settings.max_per_kind().unwrap_or(share),
        max_scanned: settings.max_scanned().unwrap_or(default.budget.max_scanned),
        max_elapsed_ms: settings
            .max_elapsed_ms()
            .map_or(default.budget.max_elapsed_ms, time_of),
    };
    ObjectOptions {
        budget,
        calls_max: settings.calls_max().unwrap_or(default.calls_max),
        stay_ms: settings.stay_ms().map_or(default.stay_ms, time_of),
        size_limit: settings
            .size_limit_bytes()
            .map(|bytes| SizeLimit::new(time_of(bytes))),
        ..default
    }
}

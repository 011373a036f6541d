//! The platform and the host as they are imported.

use js_sys::{Array, JsString, Promise, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// `ctx.storage`.
    #[derive(Clone, Debug)]
    pub type Storage;

    #[wasm_bindgen(method, getter)]
    pub fn sql(this: &Storage) -> Sql;

    #[wasm_bindgen(method, catch, js_name = transactionSync)]
    pub fn transaction_sync(
        this: &Storage,
        inside: &mut dyn FnMut() -> Result<JsValue, JsValue>,
    ) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch, js_name = getAlarm)]
    pub fn get_alarm(this: &Storage) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    pub fn set_alarm(this: &Storage, at_ms: f64) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = deleteAlarm)]
    pub fn delete_alarm(this: &Storage) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub fn sync(this: &Storage) -> Result<Promise, JsValue>;

    /// `ctx.storage.sql`.
    #[derive(Clone, Debug)]
    pub type Sql;

    #[wasm_bindgen(method, catch, variadic)]
    pub fn exec(this: &Sql, statement: &JsString, bindings: &Array) -> Result<Cursor, JsValue>;

    #[wasm_bindgen(method, catch, getter, js_name = databaseSize)]
    pub fn database_size(this: &Sql) -> Result<f64, JsValue>;

    /// What `exec` returns.
    pub type Cursor;

    #[wasm_bindgen(method, getter, js_name = rowsWritten)]
    pub fn rows_written(this: &Cursor) -> f64;

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues)]
    pub fn get_random_values(into: &mut [u8]);

    /// What the package does for one object.
    #[derive(Clone, Debug)]
    pub type Host;

    /// Runs the handler of a kind: of a due timer, whose parts are handed over one by one because an object
    /// would cost a call for each of them. `run` is the number of this run. The bytes stay where they are: the
    /// host copies what it wants to keep.
    ///
    /// Returns the number of the effects, or 0 without any, if the timer is done; else -1, and what was said is
    /// to be asked for. Never throws: a failed handler is an outcome too.
    #[wasm_bindgen(method)]
    #[allow(clippy::too_many_arguments, reason = "see above")]
    pub fn run(
        this: &Host,
        kind: u8,
        run: f64,
        reference: &[u8],
        is_named: bool,
        payload: &[u8],
        due_at: f64,
        now: f64,
        attempt: u32,
        generation: u64,
        last_error: Option<&str>,
    ) -> f64;

    /// Decides what becomes of a timer whose call has come back with this. The rest as of
    /// [`run`](Host::run).
    #[wasm_bindgen(method)]
    #[allow(clippy::too_many_arguments, reason = "see above")]
    pub fn settle(
        this: &Host,
        output: &JsValue,
        kind: u8,
        run: f64,
        reference: &[u8],
        is_named: bool,
        payload: &[u8],
        due_at: f64,
        now: f64,
        attempt: u32,
        generation: u64,
        last_error: Option<&str>,
    ) -> f64;

    /// What was said of the last run: an [`Outcome`], or a promise of it or of a number as above.
    #[wasm_bindgen(method)]
    pub fn said(this: &Host) -> JsValue;

    /// A run is over for the engine: at its deadline, or cut.
    #[wasm_bindgen(method)]
    pub fn abandon(this: &Host, run: f64);

    /// Does the effects of this number. If it could not, why is to be asked for. Never throws.
    #[wasm_bindgen(method)]
    pub fn effect(this: &Host, number: f64) -> bool;

    /// Why the last effects could not be done.
    #[wasm_bindgen(method)]
    pub fn refusal(this: &Host) -> String;

    /// The record of what was scheduled.
    #[wasm_bindgen(method)]
    pub fn scheduled(
        this: &Host,
        generation: u64,
        due_at: f64,
        state: &JsString,
        outcome: &JsString,
    ) -> JsValue;

    /// Polls a task soon, in a turn of its own.
    #[wasm_bindgen(method)]
    pub fn wake(this: &Host, task: u32);

    /// A promise that is resolved after this many milliseconds.
    #[wasm_bindgen(method)]
    pub fn sleep(this: &Host, ms: f64) -> Promise;

    /// Nobody waits for such a promise any more.
    #[wasm_bindgen(method, js_name = endSleep)]
    pub fn end_sleep(this: &Host, promise: &Promise);

    /// What a handler said.
    pub type Outcome;

    /// `done`, `reschedule`, `retry`, `dead`, `failed`, `undecodable`, `output`.
    #[wasm_bindgen(method, getter)]
    pub fn said(this: &Outcome) -> String;

    #[wasm_bindgen(method, getter, js_name = dueAt)]
    pub fn due_at(this: &Outcome) -> Option<f64>;

    /// The new payload of a reschedule; the old one stays without it.
    #[wasm_bindgen(method, getter)]
    pub fn payload(this: &Outcome) -> Option<Uint8Array>;

    #[wasm_bindgen(method, getter, js_name = afterMs)]
    pub fn after_ms(this: &Outcome) -> Option<f64>;

    #[wasm_bindgen(method, getter)]
    pub fn reason(this: &Outcome) -> Option<String>;

    /// The number of the effects, if there are any.
    #[wasm_bindgen(method, getter)]
    pub fn effects(this: &Outcome) -> Option<f64>;

    /// Timers to be scheduled or cancelled with the effects, as [`unpacked`](crate::outcome::unpacked) reads them.
    #[wasm_bindgen(method, getter)]
    pub fn schedules(this: &Outcome) -> Option<Uint8Array>;

    /// Whatever a call brought back.
    #[wasm_bindgen(method, getter)]
    pub fn output(this: &Outcome) -> JsValue;

    /// How a kind is run.
    pub type KindOptions;

    #[wasm_bindgen(method, getter)]
    pub fn name(this: &KindOptions) -> String;

    #[wasm_bindgen(method, getter, js_name = isDetached)]
    pub fn is_detached(this: &KindOptions) -> bool;

    #[wasm_bindgen(method, getter, js_name = groupMax)]
    pub fn group_max(this: &KindOptions) -> Option<u16>;

    #[wasm_bindgen(method, getter)]
    pub fn concurrency(this: &KindOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = deadlineMs)]
    pub fn deadline_ms(this: &KindOptions) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = perTickMax)]
    pub fn per_tick_max(this: &KindOptions) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = codecVersion)]
    pub fn codec_version(this: &KindOptions) -> Option<u16>;

    /// 0 retries for ever.
    #[wasm_bindgen(method, getter, js_name = attemptsMax)]
    pub fn attempts_max(this: &KindOptions) -> Option<u16>;

    #[wasm_bindgen(method, getter, js_name = retryInitialMs)]
    pub fn retry_initial_ms(this: &KindOptions) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = retryMaxMs)]
    pub fn retry_max_ms(this: &KindOptions) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = retryJitterPercent)]
    pub fn retry_jitter_percent(this: &KindOptions) -> Option<u8>;

    /// How an object is run.
    pub type ObjectSettings;

    #[wasm_bindgen(method, getter, js_name = maxFired)]
    pub fn max_fired(this: &ObjectSettings) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = maxPerKind)]
    pub fn max_per_kind(this: &ObjectSettings) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = maxScanned)]
    pub fn max_scanned(this: &ObjectSettings) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = maxElapsedMs)]
    pub fn max_elapsed_ms(this: &ObjectSettings) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = callsMax)]
    pub fn calls_max(this: &ObjectSettings) -> Option<u32>;

    #[wasm_bindgen(method, getter, js_name = stayMs)]
    pub fn stay_ms(this: &ObjectSettings) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = sizeLimitBytes)]
    pub fn size_limit_bytes(this: &ObjectSettings) -> Option<f64>;

    #[wasm_bindgen(method, getter, js_name = isAfterTrap)]
    pub fn is_after_trap(this: &ObjectSettings) -> bool;
}

// By the address of the module's script, beside whose folder it lies.
#[wasm_bindgen(raw_module = "../core-sql.js")]
extern "C" {
    /// Runs a statement for a row's key. Rows written, or -1 if it threw. The bytes stay where they are: the
    /// platform has read them when it returns.
    #[wasm_bindgen(js_name = writeKey)]
    pub fn write_key(sql: &Sql, statement: &JsString, part: f64, key: &[u8]) -> f64;

    /// The same for a row.
    #[wasm_bindgen(js_name = writeRow)]
    pub fn write_row(sql: &Sql, statement: &JsString, part: f64, key: &[u8], value: &[u8]) -> f64;

    /// The same for a row that goes in beside a wake.
    #[wasm_bindgen(js_name = writeRowBeside)]
    pub fn write_row_beside(
        sql: &Sql,
        statement: &JsString,
        part: f64,
        key: &[u8],
        value: &[u8],
        kind: f64,
        at: f64,
    ) -> f64;

    /// Runs a statement whose bindings are numbers.
    #[wasm_bindgen(catch, js_name = execNumbers)]
    pub fn exec_numbers(
        sql: &Sql,
        statement: &JsString,
        numbers: &[f64],
    ) -> Result<Cursor, JsValue>;

    /// What a statement that writes a key or a row threw.
    #[wasm_bindgen(js_name = lastThrown)]
    pub fn last_thrown() -> JsValue;

    /// The next rows of a cursor, one behind the other.
    #[wasm_bindgen(catch, js_name = nextRows)]
    pub fn next_rows(cursor: &Cursor) -> Result<Vec<u8>, JsValue>;
}

use std::fmt;
use std::sync::Arc;

use super::progress::Progress;
use super::relay::RelayRun;
use super::run::{Ran, Seen};
use super::sink_run::SinkRun;
use super::{Backlog, DeliveryMeter, DeliveryOptions, OutboxName, Relay, RunSummary, Sink};
use crate::future::{BoxFuture, MaybeSendSync};
use crate::kinds::owner::drained;
use crate::kinds::row::Row;
use crate::ordered::OrderedMap;
use crate::rows::Malformed;
use crate::runtime::Runtime;
use crate::store::StoreError;
use crate::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, RetryPolicy, TimerCtx,
};

/// What a run may take beyond its budget and its last call, for its reads, in milliseconds.
const READS_MS: u64 = 10_000;

/// The handler of kind 8: delivers the outcomes of every outbox of the process.
///
/// Each outbox has a sink or a relay, by its name; one that has none waits, tried again every few minutes,
/// until a process that has one takes it over.
///
/// ```
/// use dueline::kinds::outcome_delivery::{
///     Delivery, OUTCOME_DELIVERY, OutcomeDelivery, Sink, SinkError,
/// };
/// use dueline::timers::Registry;
/// # use dueline::BoxFuture;
/// # struct Webhooks;
/// # impl Sink for Webhooks {
/// #     fn deliver<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<(), SinkError>> {
/// #         Box::pin(async { Ok(()) })
/// #     }
/// # }
/// # let runtime = dueline_testkit::test_runtime(&dueline_testkit::ManualClock::new(0));
///
/// let delivery = OutcomeDelivery::new(runtime).otherwise(Webhooks);
/// let registry = Registry::new().with(OUTCOME_DELIVERY, delivery.registration())?;
/// # Ok::<(), dueline::timers::RegistryError>(())
/// ```
#[must_use]
pub struct OutcomeDelivery {
    runtime: Runtime,
    routes: OrderedMap<OutboxName, Box<dyn Route>>,
    otherwise: Option<Box<dyn Route>>,
    meter: Option<Arc<dyn DeliveryMeter>>,
}

/// Where the outcomes of an outbox go. Behind a trait, so that a program without relays holds no code of them.
trait Route: MaybeSendSync {
    fn options(&self) -> &DeliveryOptions;

    fn run<'a>(
        &'a self,
        fired: (&'a TimerCtx<'a>, &'a DueTimer),
        runtime: &'a Runtime,
        ran: Ran,
    ) -> BoxFuture<'a, Result<Ran, StoreError>>;
}

struct ToSink(Arc<dyn Sink>, DeliveryOptions);

impl Route for ToSink {
    fn options(&self) -> &DeliveryOptions {
        &self.1
    }

    fn run<'a>(
        &'a self,
        fired: (&'a TimerCtx<'a>, &'a DueTimer),
        runtime: &'a Runtime,
        ran: Ran,
    ) -> BoxFuture<'a, Result<Ran, StoreError>> {
        Box::pin(SinkRun::new(fired, runtime, &*self.0, &self.1, ran).run())
    }
}

impl Route for Relay {
    fn options(&self) -> &DeliveryOptions {
        &self.options
    }

    fn run<'a>(
        &'a self,
        fired: (&'a TimerCtx<'a>, &'a DueTimer),
        runtime: &'a Runtime,
        ran: Ran,
    ) -> BoxFuture<'a, Result<Ran, StoreError>> {
        Box::pin(RelayRun::new(fired, runtime, self, ran).run())
    }
}

impl OutcomeDelivery {
    /// A handler without sinks. The runtime gives deadlines and budgets their time.
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            routes: OrderedMap::new(),
            otherwise: None,
            meter: None,
        }
    }

    /// Delivers the outboxes of this name, of every partition, to a sink.
    pub fn sink(self, outbox: OutboxName, sink: impl Sink) -> Self {
        self.sink_with(outbox, sink, DeliveryOptions::default())
    }

    /// The same with other figures than the default ones.
    pub fn sink_with(
        mut self,
        outbox: OutboxName,
        sink: impl Sink,
        options: DeliveryOptions,
    ) -> Self {
        let route = ToSink(Arc::new(sink), options.clamped());
        self.routes.insert(outbox, Box::new(route));
        self
    }

    /// Applies the outcomes of the outboxes of this name, of every partition, to other partitions.
    pub fn relay(mut self, outbox: OutboxName, relay: Relay) -> Self {
        self.routes.insert(outbox, Box::new(relay));
        self
    }

    /// Delivers every other outbox to this sink.
    pub fn otherwise(self, sink: impl Sink) -> Self {
        self.otherwise_with(sink, DeliveryOptions::default())
    }

    /// The same with other figures than the default ones.
    pub fn otherwise_with(mut self, sink: impl Sink, options: DeliveryOptions) -> Self {
        self.otherwise = Some(Box::new(ToSink(Arc::new(sink), options.clamped())));
        self
    }

    /// Tells this of every run.
    pub fn meter(mut self, meter: impl DeliveryMeter) -> Self {
        self.meter = Some(Arc::new(meter));
        self
    }

    /// How the handler is to be registered: detached, 16 outboxes at a time, retried for ever, as an
    /// outbox without its timer would wait for ever.
    pub fn registration(self) -> Registration {
        let routes = self.routes.values().chain(&self.otherwise);
        let longest_ms = routes
            .map(|route| {
                let options = route.options();
                options
                    .run_budget_ms
                    .saturating_add(options.call_deadline_ms.saturating_mul(4))
            })
            .max()
            .unwrap_or(0);
        Registration::detached(Deliverer(self))
            .deadline_ms(longest_ms.saturating_add(READS_MS))
            .retry(RetryPolicy::default().for_ever())
    }

    async fn run(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
    ) -> Result<Option<Box<Ran>>, HandlerError> {
        let Ok(outbox) = OutboxName::new(timer.reference().clone()) else {
            tracing::warn!(partition = %ctx.partition(), "a timer of no outbox drains");
            return Ok(None);
        };
        let seen = Seen::read(ctx, &outbox).await.map_err(unread)?;
        let Some(progress) = progress_of(timer, &seen) else {
            return Ok(None);
        };
        let Some(state) = seen.owned_by(progress.stamp) else {
            return Ok(None);
        };
        let Some(route) = self.routes.get(&outbox).or(self.otherwise.as_ref()) else {
            let text = format!("no sink is registered for the outbox {outbox}");
            return Err(HandlerError::uncharged(text));
        };
        let latest_retry_ms = route.options().latest_retry_ms(self.runtime.now_ms());
        let progress = if progress.is_possible(state.last_sequence, latest_retry_ms) {
            progress
        } else {
            let why = Malformed("it is ahead of all that was written");
            from_the_head(timer, &why, state.stamp)
        };
        let gone = seen.gone.row.unwrap_or_default();
        let summary = RunSummary {
            partition: ctx.partition().clone(),
            outbox,
            backlog: Backlog::of(&state, &gone),
            delivered: 0,
            failed: 0,
            set_aside: 0,
            lag_ms: 0,
        };
        let ran = Ran::begin(seen, state, progress, summary);
        let ran = route.run((ctx, timer), &self.runtime, ran).await?;
        self.report(&ran.summary, route.options().lag_warn_ms);
        Ok(Some(Box::new(ran)))
    }

    fn report(&self, summary: &RunSummary, lag_warn_ms: u64) {
        if summary.lag_ms >= lag_warn_ms {
            tracing::warn!(
                partition = %summary.partition,
                outbox = %summary.outbox,
                lag_ms = summary.lag_ms,
                rows = summary.backlog.rows,
                "an outbox is behind"
            );
        }
        if let Some(meter) = &self.meter {
            meter.ran(summary);
        }
    }
}

/// Rows that cannot be read are not the fault of an outcome: no attempt is counted.
#[allow(clippy::needless_pass_by_value, reason = "it maps an error")]
fn unread(error: StoreError) -> HandlerError {
    HandlerError::uncharged(error.to_string())
}

/// What the timer's payload says; the beginning if it says nothing that can be read; `None` if there is no
/// outbox.
fn progress_of(timer: &DueTimer, seen: &Seen) -> Option<Progress> {
    let state = seen.state.row?;
    let progress = Progress::decode(timer.payload())
        .unwrap_or_else(|malformed| from_the_head(timer, &malformed, state.stamp));
    Some(progress)
}

/// In place of a progress that is damaged.
fn from_the_head(timer: &DueTimer, why: &Malformed, stamp: u64) -> Progress {
    tracing::warn!(
        outbox = %timer.reference().escape_ascii(),
        %why,
        "the progress of a delivery is damaged; it begins at the head"
    );
    Progress::beginning(stamp)
}

/// The handler as it is registered: what its runs bring back is its own affair.
struct Deliverer(OutcomeDelivery);

impl DetachedHandler for Deliverer {
    type Output = Option<Box<Ran>>;

    fn call<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Self::Output, HandlerError>> {
        Box::pin(self.0.run(ctx, timer))
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        ran: &'a Self::Output,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(async move {
            let Some(ran) = ran else {
                return Ok(drained());
            };
            let now = Seen::read(ctx, &ran.summary.outbox).await.map_err(unread)?;
            Ok(ran.settle(ctx, timer, &now))
        })
    }
}

impl fmt::Debug for OutcomeDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outboxes: Vec<String> = self.routes.keys().map(ToString::to_string).collect();
        f.debug_struct("OutcomeDelivery")
            .field("outboxes", &outboxes)
            .field("has_otherwise", &self.otherwise.is_some())
            .finish_non_exhaustive()
    }
}

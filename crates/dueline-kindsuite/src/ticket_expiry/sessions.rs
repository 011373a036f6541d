//! External sessions: aborted before the ticket is closed, best effort.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use dueline::BoxFuture;
use dueline::kinds::ticket_expiry::{
    Changed, Hold, SessionAbort, TICKET_EXPIRY, Ticket, TicketEvent, Tickets,
};
use dueline::store::Partition;
use dueline::timers::{HandlerError, TickBudget, run_due};
use dueline_testkit::{ManualClock, block_on};

use super::{Rig, TTL_MS, Told};
use crate::Make;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Works,
    Fails,
    Panics,
    Hangs,
}

/// Sessions that end this way when they are aborted.
#[derive(Clone)]
struct Sessions {
    way: Way,
    clock: ManualClock,
    aborted: Arc<Mutex<Vec<String>>>,
}

impl SessionAbort for Sessions {
    fn abort<'a>(
        &'a self,
        _: &'a Partition,
        ticket: &'a Ticket,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        let session = String::from_utf8(ticket.session().unwrap().to_vec()).unwrap();
        self.aborted.lock().unwrap().push(session);
        match self.way {
            Way::Works => Box::pin(std::future::ready(Ok(()))),
            Way::Fails => Box::pin(std::future::ready(Err(HandlerError::new("no answer")))),
            Way::Panics => panic!("a bug in the abort"),
            Way::Hangs => Box::pin(std::future::poll_fn(|context| {
                // The sleep that ends it begins behind the first poll.
                self.clock.advance_ms(1_000);
                context.waker().wake_by_ref();
                Poll::Pending
            })),
        }
    }
}

impl Sessions {
    fn new(rig_clock: &ManualClock, way: Way) -> Self {
        Self {
            way,
            clock: rig_clock.clone(),
            aborted: Arc::default(),
        }
    }

    fn aborted(&self) -> Vec<String> {
        self.aborted.lock().unwrap().clone()
    }
}

fn rig(make: Make<'_>, way: Way) -> (Rig, Sessions, Told) {
    let world = crate::World::new(make);
    let sessions = Sessions::new(&world.clock, way);
    let told = Told::default();
    let rig = Rig::over(world, |tickets| {
        tickets
            .with_sessions(sessions.clone())
            .with_hooks(told.clone())
    });
    (rig, sessions, told)
}

fn upload(session: &'static str) -> Hold {
    Hold::new("seat", TTL_MS).actor("alice").session(session)
}

pub fn an_expired_ticket_has_its_session_aborted_first(make: Make<'_>) {
    let (rig, sessions, told) = rig(make, Way::Works);
    rig.open(&upload("one"));
    rig.open(&Hold::new("seat", TTL_MS));
    rig.world.advance_ms(TTL_MS);
    let tick = block_on(run_due(
        &rig.engine,
        &rig.world.partition,
        TickBudget::default(),
    ));
    assert_eq!(tick.report.total.claimed, 2);
    for call in tick.calls {
        let finished = block_on(call.run());
        assert_eq!(
            rig.ends().len(),
            0,
            "no ticket is closed before its session is aborted"
        );
        drop(finished);
    }
    assert_eq!(sessions.aborted(), ["one"]);
    // Nobody settled: the claims end, and the calls are made again.
    rig.world.advance_ms(60_000);
    rig.world.tick_until_quiet(&rig.engine, 5);
    assert_eq!(sessions.aborted(), ["one", "one"], "at least once");
    rig.assert_clean();
    assert_eq!(rig.ends().len(), 2);
    assert!(told.take().is_empty());
}

/// An error and a call without end are counted, and the ticket is closed in the same tick.
pub fn a_failed_abort_is_told_and_blocks_nothing(make: Make<'_>) {
    told_of_a_failure(make, Way::Fails, "no answer");
    told_of_a_failure(make, Way::Hangs, "the run passed its deadline of 5000 ms");
}

/// The same where a target unwinds.
pub fn an_abort_that_panics_is_told_and_blocks_nothing(make: Make<'_>) {
    let error = "the handler panicked: a bug in the abort";
    told_of_a_failure(make, Way::Panics, error);
}

fn told_of_a_failure(make: Make<'_>, way: Way, error: &str) {
    let (rig, sessions, told) = rig(make, way);
    let id = rig.open(&upload("one")).id();
    rig.world.advance_ms(TTL_MS);
    let report = rig.tick();
    assert_eq!(report.total.fired, 1, "{way:?}: {report:?}");
    let failed = TicketEvent::AbortFailed {
        id,
        error: error.to_owned(),
    };
    assert_eq!(told.take(), [failed]);
    assert_eq!(sessions.aborted().len(), 1);
    rig.assert_clean();
    assert_eq!(rig.ends().len(), 1);
}

pub fn only_so_many_go_out_in_a_tick(make: Make<'_>) {
    let (rig, sessions, _) = rig(make, Way::Works);
    for _ in 0..20 {
        rig.open(&upload("one"));
    }
    rig.world.advance_ms(TTL_MS);
    let report = rig.tick();
    assert_eq!((report.total.claimed, report.total.fired), (8, 8));
    assert!(
        report
            .next_wake_ms
            .is_some_and(|at_ms| at_ms <= rig.world.now_ms())
    );
    assert_eq!(sessions.aborted().len(), 8);
    assert_eq!(rig.tick().total.fired, 8);
    assert_eq!(rig.tick().total.fired, 4);
    rig.assert_clean();

    let world = crate::World::new(make);
    let sessions = Sessions::new(&world.clock, Way::Works);
    let more = Rig::over(world, |tickets| {
        tickets.with_sessions(sessions).with_calls_per_tick(15)
    });
    for _ in 0..20 {
        more.open(&upload("one"));
    }
    more.world.advance_ms(TTL_MS);
    assert_eq!(more.tick().total.fired, 15);
}

/// Consumed, extended, without a session: nothing is aborted.
pub fn a_ticket_that_goes_on_keeps_its_session(make: Make<'_>) {
    let (rig, sessions, _) = rig(make, Way::Works);
    let used = rig.open(&upload("used"));
    let extended = rig.open(&upload("extended"));
    rig.open(&Hold::new("seat", TTL_MS));
    rig.world.advance_ms(1_000);
    let partition = &rig.world.partition;
    block_on(rig.tickets.consume(partition, used.id())).unwrap();
    block_on(rig.tickets.extend(partition, extended.id(), TTL_MS)).unwrap();
    rig.world.advance_ms(TTL_MS - 1_000);
    let report = rig.tick();
    assert_eq!((report.total.fired, report.total.rescheduled), (2, 1));
    assert!(sessions.aborted().is_empty());
    rig.world.advance_ms(1_000);
    rig.tick();
    assert_eq!(sessions.aborted(), ["extended"]);
    rig.assert_clean();
}

pub fn a_cancelled_ticket_has_its_session_aborted(make: Make<'_>) {
    let (rig, sessions, _) = rig(make, Way::Works);
    let ticket = rig.open(&upload("one"));
    let partition = &rig.world.partition;
    block_on(rig.tickets.cancel(partition, ticket.id())).unwrap();
    rig.tick();
    assert_eq!(sessions.aborted(), ["one"]);
    assert_eq!(rig.ticket_rows(), 0);
    assert_eq!(rig.ends()[0].1, "cancelled");
}

/// Whoever is asked to abort a session finds that its ticket can no longer be used.
pub fn no_session_is_aborted_while_its_ticket_can_be_used(make: Make<'_>) {
    struct Uses {
        tickets: Tickets,
        tried: Arc<AtomicUsize>,
    }
    impl SessionAbort for Uses {
        fn abort<'a>(
            &'a self,
            partition: &'a Partition,
            ticket: &'a Ticket,
        ) -> BoxFuture<'a, Result<(), HandlerError>> {
            Box::pin(async move {
                let used = self.tickets.consume(partition, ticket.id()).await?;
                assert!(matches!(used, Changed::Expired(_)), "{used:?}");
                self.tried.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        }
    }
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tried);
    let rig = Rig::with(make, |tickets| {
        let uses = Uses {
            tickets: tickets.clone(),
            tried: counted,
        };
        tickets.with_sessions(uses)
    });
    let cancelled = rig.open(&upload("one"));
    rig.open(&upload("two"));
    let partition = &rig.world.partition;
    block_on(rig.tickets.cancel(partition, cancelled.id())).unwrap();
    rig.tick();
    rig.world.advance_ms(TTL_MS);
    rig.world.tick_until_quiet(&rig.engine, 5);
    assert_eq!(tried.load(Ordering::Relaxed), 2);
    rig.assert_clean();
    assert_eq!(
        rig.engine.registry().kinds().iter().collect::<Vec<_>>(),
        [TICKET_EXPIRY]
    );
}

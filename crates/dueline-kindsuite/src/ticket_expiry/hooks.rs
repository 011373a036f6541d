//! What an application commits together with the end of a ticket.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use dueline::BoxFuture;
use dueline::kinds::ticket_expiry::{End, Hold, TICKET_CLOSE_MS, Ticket, TicketHooks};
use dueline::store::{Batch, Key, StoreError};
use dueline::timers::{Timer, TimerCtx, TimerError, TimerKind, Timers};
use dueline_testkit::block_on;

use super::{Rig, TTL_MS, seat};
use crate::{Make, World};

const JOB: TimerKind = TimerKind(20);

/// An application that checks what its members upload: the state of a check goes with the ticket, unless
/// its owner is a member; if a job looks after it, the job is asked to run.
struct Checks {
    timers: Timers,
    ends: Arc<Mutex<Vec<End>>>,
}

fn row(what: &str, ticket: &Ticket) -> Key {
    format!("{what}/{}", ticket.actor().unwrap().escape_ascii()).into()
}

impl TicketHooks for Checks {
    fn on_close<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        ticket: &'a Ticket,
        end: End,
    ) -> BoxFuture<'a, Result<Batch, StoreError>> {
        Box::pin(async move {
            self.ends.lock().unwrap().push(end);
            let keys = ["member", "check", "job"].map(|what| row(what, ticket));
            let found = ctx.reads().get_many(ctx.partition(), &keys).await?;
            let [member, check, job] = keys;
            let mut found = found.into_iter();
            let (is_member, state, has_job) = (found.next(), found.next(), found.next());
            let mut batch = Batch::new();
            if let Some(Some(state)) = state
                && is_member == Some(None)
            {
                batch = batch
                    .require_absent(member)
                    .require_equals(check.clone(), state)
                    .delete(check);
            }
            if let Some(Some(_)) = has_job {
                let kick = Timer::new(JOB, job).due_at(ctx.now_ms());
                let kick = self.timers.plan_new(&kick);
                let kick = kick.map_err(|error| StoreError::invalid(error.to_string()))?;
                batch = batch.append(kick.batch);
            }
            Ok(batch)
        })
    }
}

fn checking(make: Make<'_>) -> (Rig, Arc<Mutex<Vec<End>>>) {
    let world = World::new(make);
    let ends = Arc::default();
    let hooks = Checks {
        timers: world.timers.clone(),
        ends: Arc::clone(&ends),
    };
    (Rig::over(world, |tickets| tickets.with_hooks(hooks)), ends)
}

pub fn a_hook_writes_with_the_end_of_a_ticket(make: Make<'_>) {
    let (rig, ends) = checking(make);
    let mut rows = Batch::new();
    for key in ["check/alice", "check/bob", "member/bob", "job/carol"] {
        rows = rows.put(key, "x");
    }
    rig.world.commit(rows);
    for actor in ["alice", "bob", "carol", "dave"] {
        rig.open(&Hold::new("seat", TTL_MS).actor(actor));
    }
    rig.world.advance_ms(TTL_MS);
    assert_eq!(rig.tick().total.fired, 4);
    let has = |key: &'static str| rig.world.get(&key.into()).is_some();
    assert!(!has("check/alice"), "cleared");
    assert!(has("check/bob") && has("member/bob"), "kept for a member");
    let jobs = rig.world.timer_keys();
    let jobs: Vec<_> = jobs.iter().filter(|key| key[2] == JOB.0).collect();
    assert_eq!(jobs.len(), 1, "the job was kicked");
    assert!(jobs[0].ends_with(b"job/carol"));
    assert_eq!(*ends.lock().unwrap(), [End::Expired; 4]);
    rig.assert_clean();
}

pub fn every_end_has_its_hook(make: Make<'_>) {
    let (rig, ends) = checking(make);
    let partition = &rig.world.partition;
    let open = |key: &'static str| rig.open(&seat().idempotency_key(key)).id();
    let (used, given, cancelled) = (open("1"), open("2"), open("3"));
    block_on(rig.tickets.consume(partition, used)).unwrap();
    block_on(rig.tickets.release(partition, given)).unwrap();
    block_on(rig.tickets.cancel(partition, cancelled)).unwrap();
    rig.tick();
    let seen = ends.lock().unwrap().clone();
    assert_eq!(seen, [End::Consumed, End::Released, End::Cancelled]);
}

/// The application's guard is lost between plan and commit: the end is planned again with what is there.
pub fn a_hook_that_lost_its_guard_is_asked_again(make: Make<'_>) {
    let (rig, ends) = checking(make);
    rig.world.commit(Batch::new().put("check/alice", "x"));
    rig.open(&seat());
    rig.world.advance_ms(TTL_MS);
    let partition = rig.world.partition.clone();
    rig.world.store.before_commit(1, move |store, _, _| {
        let member = Batch::new().put("member/alice", "yes");
        assert!(
            block_on(store.apply(&partition, member))
                .unwrap()
                .is_committed()
        );
    });
    assert_eq!(rig.tick().total.fired, 1);
    assert_eq!(ends.lock().unwrap().len(), 2);
    assert!(
        rig.world.get(&"check/alice".into()).is_some(),
        "a member now"
    );
    rig.assert_clean();
}

/// A hook that hangs holds no verb for longer than its deadline, and changes nothing. Not a case of an
/// object: there the host bounds what it asks of the application.
pub fn a_hook_that_hangs_ends_its_verb(make: Make<'_>) {
    struct Hangs(Arc<()>);
    impl TicketHooks for Hangs {
        fn on_close<'a>(
            &'a self,
            _: &'a TimerCtx<'a>,
            _: &'a Ticket,
            _: End,
        ) -> BoxFuture<'a, Result<Batch, StoreError>> {
            let held = Arc::clone(&self.0);
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok(Batch::new())
            })
        }
    }
    for (close_ms, limit_ms) in [(None, TICKET_CLOSE_MS), (Some(200), 200), (Some(0), 1)] {
        let asked = Arc::new(());
        let hooks = Hangs(Arc::clone(&asked));
        let rig = Rig::with(make, |tickets| match close_ms {
            Some(close_ms) => tickets.with_hooks(hooks).with_close_ms(close_ms),
            None => tickets.with_hooks(hooks),
        });
        let id = rig.open(&seat()).id();
        let rows = rig.world.kind_rows();
        let (tickets, partition) = (&rig.tickets, &rig.world.partition);
        let verbs: [BoxFuture<'_, Result<(), TimerError>>; 4] = [
            Box::pin(async { tickets.consume(partition, id).await.map(drop) }),
            Box::pin(async { tickets.release(partition, id).await.map(drop) }),
            Box::pin(async { tickets.plan_consume(partition, id).await.map(drop) }),
            Box::pin(async { tickets.plan_release(partition, id).await.map(drop) }),
        ];
        for mut verb in verbs {
            let mut poll = || verb.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            // The store may answer on a thread of its own.
            while Arc::strong_count(&asked) < 3 {
                assert!(poll().is_pending(), "the hook is asked");
            }
            rig.world.advance_ms(limit_ms - 1);
            assert!(poll().is_pending(), "it has all of its time");
            rig.world.advance_ms(1);
            let Poll::Ready(Err(error)) = poll() else {
                panic!("a verb waits for a hook that hangs");
            };
            let TimerError::Deadline { limit_ms: told } = &error else {
                panic!("{error}");
            };
            assert_eq!(*told, limit_ms);
            assert_eq!(Arc::strong_count(&asked), 2, "the hook is dropped");
            assert_eq!(rig.world.kind_rows(), rows, "nothing has changed");
        }
        rig.world.advance_ms(TTL_MS);
        let counts = rig.world.tick_as_time_passes(&rig.engine, 5_000);
        assert_eq!((counts.failed, counts.fired), (1, 0), "the tick has 5 s");
        assert_eq!(rig.seat_count(), 1);
    }
}

/// A hook that fails keeps the ticket open, for as long as it takes; one that finds a corrupt row of its
/// own sets it aside.
pub fn a_hook_that_fails_keeps_the_ticket(make: Make<'_>) {
    struct Fails {
        left: AtomicUsize,
        corrupt: bool,
    }
    impl TicketHooks for Fails {
        fn on_close<'a>(
            &'a self,
            _: &'a TimerCtx<'a>,
            _: &'a Ticket,
            _: End,
        ) -> BoxFuture<'a, Result<Batch, StoreError>> {
            let left = self.left.load(Ordering::Relaxed);
            self.left.store(left.saturating_sub(1), Ordering::Relaxed);
            let answer = match (left, self.corrupt) {
                (0, _) => Ok(Batch::new()),
                (_, false) => Err(StoreError::invalid("not now")),
                (_, true) => Err(StoreError::corrupt("the check does not decode")),
            };
            Box::pin(std::future::ready(answer))
        }
    }
    for corrupt in [false, true] {
        let left = AtomicUsize::new(30);
        let rig = Rig::with(make, |tickets| tickets.with_hooks(Fails { left, corrupt }));
        rig.open(&seat());
        rig.world.advance_ms(TTL_MS);
        for round in 0..30 {
            let report = rig.tick();
            let kept = report.total.failed + report.total.rescheduled;
            assert_eq!(kept, 1, "round {round}: {report:?}");
            assert_eq!(rig.seat_count(), 1);
            rig.world.advance_ms(800_000);
        }
        assert_eq!(rig.tick().total.fired, 1);
        rig.assert_clean();
        assert_eq!(rig.ends().len(), 1);
    }
}

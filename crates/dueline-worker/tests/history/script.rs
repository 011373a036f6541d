//! Handlers that do what their payload says.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use dueline::rows::{Header, TimerKey, TimerRow};
use dueline::runtime::Runtime;
use dueline::store::{Batch, Key};
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, Registration, Registry, RetryPolicy, TimerCtx,
    TimerHandler, TimerKind,
};
use dueline::{BoxFuture, Bytes};
use dueline_testkit::model::{Random, effect_key};

/// What a timer does when it runs. Those that go wrong do so at their first runs, as often as the second
/// byte of the payload says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Done,
    Log,
    Fail,
    RetryAfter,
    Dead,
    Reschedule,
    Put,
    LostGuard,
    TooMuch,
    Slow,
    Hang,
    /// Takes the whole instance down.
    Trap,
}

const OPS: [Op; 12] = [
    Op::Done,
    Op::Log,
    Op::Fail,
    Op::RetryAfter,
    Op::Dead,
    Op::Reschedule,
    Op::Put,
    Op::LostGuard,
    Op::TooMuch,
    Op::Slow,
    Op::Hang,
    Op::Trap,
];

pub const KINDS: [TimerKind; 3] = [TimerKind(16), TimerKind(17), TimerKind(18)];
/// Nobody has a handler for it.
pub const UNKNOWN: TimerKind = TimerKind(99);

pub fn payload(op: Op, times: u8) -> Bytes {
    let number = OPS.iter().position(|it| *it == op).unwrap() as u8;
    Bytes::from(vec![number, times])
}

pub fn random_payload(random: &mut Random, traps: bool) -> Bytes {
    let op = match random.below(10) {
        0..4 => random.pick(&[Op::Log, Op::Done, Op::Reschedule, Op::Put]),
        _ => random.pick(&OPS),
    };
    let op = if op == Op::Trap && !traps {
        Op::Fail
    } else {
        op
    };
    payload(op, random.below(4) as u8)
}

/// Set by a handler that has taken its instance down.
#[derive(Clone, Debug, Default)]
pub struct Trap(Arc<AtomicBool>);

impl Trap {
    pub fn spring(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

#[derive(Clone, Debug)]
pub struct Script {
    pub runtime: Runtime,
    pub trap: Trap,
}

impl Script {
    /// Two inline kinds, one of which fires in groups, and a detached one.
    pub fn registry(&self, group_max: u16) -> Registry {
        let policy = RetryPolicy {
            attempts_max: Some(4),
            initial_ms: 400,
            max_ms: 3_000,
            jitter_percent: 20,
        };
        let inline = Registration::inline(self.clone())
            .deadline_ms(1_500)
            .retry(policy);
        Registry::new()
            .with(KINDS[0], inline.clone().group_max(group_max))
            .unwrap()
            .with(KINDS[1], inline)
            .unwrap()
            .with(
                KINDS[2],
                Registration::detached(self.clone())
                    .concurrency(2)
                    .deadline_ms(2_000)
                    .retry(policy),
            )
            .unwrap()
    }

    async fn run(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Fired, HandlerError> {
        let (op, times) = op_of(timer);
        let goes_wrong = timer.attempt() <= u16::from(times);
        let done = Batch::new().put(effect_key(timer), "");
        match op {
            Op::Log => Ok(Fired::Done(log(ctx, timer, done).await?)),
            Op::Slow => {
                for _ in 0..times {
                    give_way().await;
                }
                Ok(Fired::Done(log(ctx, timer, done).await?))
            }
            Op::Fail if goes_wrong => Err(HandlerError::new("as told")),
            Op::Hang if goes_wrong => pending().await,
            Op::Trap if goes_wrong => {
                self.trap.spring();
                pending().await
            }
            Op::RetryAfter if goes_wrong => Ok(Fired::Retry {
                after_ms: Some(u64::from(times) * 700),
                reason: "later".to_owned(),
            }),
            Op::Dead => Ok(Fired::Dead {
                reason: "as told".to_owned(),
                batch: Batch::new(),
            }),
            Op::Reschedule if times > 0 => Ok(Fired::Reschedule {
                due_at_ms: if times == 2 {
                    timer.due_at_ms().saturating_sub(50)
                } else {
                    ctx.now_ms() + 600
                },
                payload: payload(op, times - 1),
                batch: done,
            }),
            Op::Put => Ok(Fired::Done(self.put(ctx, timer, times, done))),
            Op::LostGuard if goes_wrong => Ok(Fired::Done(done.require_present("never"))),
            Op::TooMuch if goes_wrong => {
                let much = (0..93).fold(done, |batch, n| batch.put(format!("much/{n}"), ""));
                Ok(Fired::Done(much))
            }
            _ => Ok(Fired::Done(done)),
        }
    }

    /// Another timer, past or to come.
    fn put(&self, ctx: &TimerCtx<'_>, timer: &DueTimer, times: u8, batch: Batch) -> Batch {
        let due_ms = match times {
            0 => ctx.now_ms(),
            1 => ctx.now_ms().saturating_sub(100),
            _ => ctx.now_ms() + 900,
        };
        let key = TimerKey {
            kind: KINDS[usize::from(times) % 3],
            due_ms,
            generation: self.runtime.draw_generation(),
            reference: timer.reference().clone(),
        };
        let row = TimerRow {
            header: Header {
                original_due_ms: due_ms,
                ..Header::default()
            },
            payload: payload(Op::Log, 0),
        };
        let key = key.encode();
        batch.require_absent(key.clone()).put(key, row.encode())
    }
}

pub fn op_of(timer: &DueTimer) -> (Op, u8) {
    let bytes = timer.payload();
    (OPS[usize::from(bytes[0])], bytes[1])
}

async fn log(ctx: &TimerCtx<'_>, timer: &DueTimer, batch: Batch) -> Result<Batch, HandlerError> {
    let key = Key::from_static(b"log");
    let seen = ctx.get(&key).await?;
    let mut longer = seen.clone().unwrap_or_default().to_vec();
    longer.push(timer.kind().0);
    longer.extend_from_slice(timer.reference());
    Ok(batch.require_unchanged(key.clone(), seen).put(key, longer))
}

async fn give_way() {
    let mut given = false;
    poll_fn(|_| {
        if std::mem::replace(&mut given, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

impl TimerHandler for Script {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(self.run(ctx, timer))
    }
}

impl DetachedHandler for Script {
    type Output = ();

    fn call<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            let (op, times) = op_of(timer);
            self.runtime
                .sleep(Duration::from_millis(u64::from(times) * 400))
                .await;
            if op == Op::Fail && timer.attempt() <= u16::from(times) {
                return Err(HandlerError::new("the call failed"));
            }
            Ok(())
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
        (): &'a (),
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(self.run(ctx, timer))
    }
}

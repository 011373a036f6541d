//! A handler whose timers carry what is to become of them: every way a run can end, as data.
//!
//! Each run that takes effect puts its [`mark_effect`], by which a history is judged.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use dueline::rows::{Flags, Header, NameKey, NameRow, NameState, TimerKey, TimerRow};
use dueline::runtime::Runtime;
use dueline::store::{Batch, Key, ScanRange};
use dueline::timers::{
    DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler, TimerKind,
};
use dueline::{BoxFuture, Bytes};

use super::{Occurrence, Random, cut_key, mark_effect};

/// What a timer does when it runs. `times` is how many runs fail before one succeeds, or how often
/// it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Ends.
    Done,
    /// Appends to a row that others append to as well.
    Log,
    /// Reads one counter and writes the next.
    Count,
    /// Fails by an error.
    Fail,
    /// Fails by a panic.
    Panic,
    /// Asks to be run again after a while.
    RetryAfter,
    /// Gives up.
    Dead,
    /// Goes on, at a later time or at one that is over.
    Reschedule,
    /// Removes the named timer of the target.
    Cut,
    /// Replaces the named timer of the target by one that is due at another time.
    Replace,
    /// Puts a new timer.
    Put,
    /// Returns more operations than a batch may have.
    TooMuch,
    /// Guards what never holds.
    LostGuard,
    /// Cannot read its payload.
    Undecodable,
    /// Scans a range page by page, adds to it, and takes away from it.
    Tally,
    /// Waits for something else than the store between its reads and its end.
    Slow,
    /// Sleeps by the clock of its process, half a second each time.
    Sleep,
    /// Never ends by itself.
    Hang,
    /// Writes the name of its own timer, which no handler may.
    OwnName,
    /// Goes on, a second after each due.
    Recur,
    /// Reads the number of its kind and writes the next, without a guard: right as long as one tick at a
    /// time runs the kind.
    Chain,
    /// Never ends by itself: whoever runs it cuts the process.
    Kill,
}

/// Every operation, in the order of their numbers in a payload.
pub const OPS: [Op; 22] = [
    Op::Done,
    Op::Log,
    Op::Count,
    Op::Fail,
    Op::Panic,
    Op::RetryAfter,
    Op::Dead,
    Op::Reschedule,
    Op::Cut,
    Op::Replace,
    Op::Put,
    Op::TooMuch,
    Op::LostGuard,
    Op::Undecodable,
    Op::Tally,
    Op::Slow,
    Op::Sleep,
    Op::Hang,
    Op::OwnName,
    Op::Recur,
    Op::Chain,
    Op::Kill,
];

/// The kinds of scripted timers.
pub const KINDS: [TimerKind; 4] = [TimerKind(16), TimerKind(17), TimerKind(18), TimerKind(19)];
/// The references of scripted timers: few, so that they meet.
pub const REFERENCES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// How far apart the dues of [`Op::Recur`] are.
pub const RECUR_MS: u64 = 1_000;

/// A payload: the operation, how often, and a target.
pub fn payload(op: Op, times: u8, kind: TimerKind, reference: &str) -> Bytes {
    let number = OPS.iter().position(|it| *it == op);
    let number = number
        .and_then(|number| u8::try_from(number).ok())
        .unwrap_or(0);
    let mut bytes = vec![number, times, kind.0];
    bytes.extend_from_slice(reference.as_bytes());
    bytes.into()
}

/// The operation that a payload names, and how often.
pub fn op_of(payload: &[u8]) -> Option<(Op, u8)> {
    let [number, times, ..] = payload else {
        return None;
    };
    let op = OPS.get(usize::from(*number)).copied()?;
    Some((op, *times))
}

/// The row in which [`Op::Chain`] counts the runs of a kind.
pub fn chain_key(kind: TimerKind) -> Key {
    Key::from(format!("chain/{}", kind.0))
}

/// The operations that a history without moving clocks can play.
const TIMELESS: [Op; 16] = [
    Op::Done,
    Op::Log,
    Op::Count,
    Op::Fail,
    Op::Panic,
    Op::RetryAfter,
    Op::Dead,
    Op::Reschedule,
    Op::Cut,
    Op::Replace,
    Op::Put,
    Op::TooMuch,
    Op::LostGuard,
    Op::Undecodable,
    Op::Tally,
    Op::Slow,
];

/// A payload of any operation that waits for no clock, those that end well more often.
pub fn random_payload(random: &mut Random) -> Bytes {
    let op = match random.below(10) {
        0..4 => random.pick(&[Op::Log, Op::Count, Op::Tally, Op::Done]),
        _ => random.pick(&TIMELESS),
    };
    // Where attempts are few, five failures end in the dead class.
    let times = u8::try_from(random.below(6)).unwrap_or(0);
    payload(op, times, random.pick(&KINDS), random.pick(&REFERENCES))
}

/// What a payload says.
struct Told {
    op: Op,
    times: u8,
    target: NameKey,
}

impl Told {
    fn of(timer: &DueTimer) -> Result<Self, HandlerError> {
        let unread = || HandlerError::undecodable("not a script");
        let payload = timer.payload();
        let [number, times, kind, ..] = payload.as_ref() else {
            return Err(unread());
        };
        let op = OPS.get(usize::from(*number)).copied();
        Ok(Self {
            op: op.ok_or_else(unread)?,
            times: *times,
            target: NameKey {
                kind: TimerKind(*kind),
                reference: payload.slice(3..),
            },
        })
    }
}

/// Runs its payload.
#[derive(Clone, Debug)]
pub struct Script {
    /// The host of the process it runs in: what it schedules draws its generation here.
    pub runtime: Runtime,
}

impl Script {
    #[allow(clippy::too_many_lines, reason = "a table of what each operation does")]
    async fn run(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Fired, HandlerError> {
        let Told { op, times, target } = Told::of(timer)?;
        let is_own = timer.is_named()
            && target.kind == timer.kind()
            && target.reference == *timer.reference();
        let failing = timer.attempt() <= u16::from(times);
        let done = mark_effect(Batch::new(), timer, None);
        match op {
            Op::Log => Ok(Fired::Done(self.log(ctx, timer, done).await?)),
            Op::Count => Ok(Fired::Done(count(ctx, timer, times, done).await?)),
            Op::Slow => {
                let batch = self.log(ctx, timer, done).await?;
                for _ in 0..times {
                    give_way().await;
                }
                Ok(Fired::Done(count(ctx, timer, times, batch).await?))
            }
            Op::Tally => Ok(Fired::Done(tally(ctx, timer, times, done).await?)),
            Op::Fail if failing => Err(HandlerError::new("as told")),
            // Without the hook that would print it.
            Op::Panic if failing => std::panic::resume_unwind(Box::new("as told")),
            Op::Sleep => {
                let time = Duration::from_millis(500 * u64::from(times));
                self.runtime.sleep(time).await;
                Ok(Fired::Done(self.log(ctx, timer, done).await?))
            }
            Op::Hang if failing => pending().await,
            Op::Kill => pending().await,
            Op::Chain => Ok(Fired::Done(chain(ctx, timer, done).await?)),
            Op::OwnName if failing && timer.is_named() => {
                let own = NameKey {
                    kind: timer.kind(),
                    reference: timer.reference().clone(),
                };
                Ok(Fired::Done(done.delete(own.encode())))
            }
            Op::RetryAfter if failing => Ok(Fired::Retry {
                after_ms: Some(u64::from(times) * 700),
                reason: "later".to_owned(),
            }),
            Op::Dead => Ok(Fired::Dead {
                reason: "as told".to_owned(),
                batch: if times.is_multiple_of(2) {
                    Batch::new()
                } else {
                    Batch::new().put("dead", timer.reference().clone())
                },
            }),
            Op::Reschedule if times > 0 => {
                let due_at_ms = if times.is_multiple_of(2) {
                    ctx.now_ms() + 700
                } else {
                    timer.due_at_ms().saturating_sub(50)
                };
                self.go_on(ctx, timer, (op, times - 1, &target), due_at_ms)
                    .await
            }
            Op::Recur if times > 0 => {
                let due_at_ms = timer.due_at_ms() + RECUR_MS;
                self.go_on(ctx, timer, (op, times - 1, &target), due_at_ms)
                    .await
            }
            Op::Cut if !is_own => Ok(Fired::Done(cut(ctx, &target, done).await?)),
            Op::Replace if !is_own => {
                let batch = cut(ctx, &target, done).await?;
                Ok(Fired::Done(self.put(ctx, &target, times, true, batch)))
            }
            Op::Put => Ok(Fired::Done(self.put(ctx, &target, times, false, done))),
            Op::TooMuch if failing => {
                let much = (0..93).fold(done, |batch, n| batch.put(format!("much/{n}"), ""));
                Ok(Fired::Done(much))
            }
            Op::LostGuard if failing => Ok(Fired::Done(done.require_present("never"))),
            Op::Undecodable if times > 1 => Err(HandlerError::undecodable("as told")),
            _ => Ok(Fired::Done(done)),
        }
    }

    async fn go_on(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        (op, times, target): (Op, u8, &NameKey),
        due_at_ms: u64,
    ) -> Result<Fired, HandlerError> {
        let reference = std::str::from_utf8(&target.reference)?;
        let done = mark_effect(Batch::new(), timer, Some(due_at_ms));
        Ok(Fired::Reschedule {
            due_at_ms,
            payload: payload(op, times, target.kind, reference),
            batch: self.log(ctx, timer, done).await?,
        })
    }

    async fn log(
        &self,
        ctx: &TimerCtx<'_>,
        timer: &DueTimer,
        batch: Batch,
    ) -> Result<Batch, HandlerError> {
        let key = Key::from_static(b"log");
        let seen = ctx.get(&key).await?;
        let mut longer = seen.clone().unwrap_or_default().to_vec();
        longer.push(timer.kind().0);
        longer.extend_from_slice(timer.reference());
        longer.push(b' ');
        Ok(batch.require_unchanged(key.clone(), seen).put(key, longer))
    }

    fn put(
        &self,
        ctx: &TimerCtx<'_>,
        target: &NameKey,
        times: u8,
        named: bool,
        batch: Batch,
    ) -> Batch {
        let due_ms = if times.is_multiple_of(2) {
            ctx.now_ms() + 900
        } else {
            ctx.now_ms().saturating_sub(100)
        };
        let key = TimerKey {
            kind: target.kind,
            due_ms,
            generation: self.runtime.draw_generation(),
            reference: target.reference.clone(),
        };
        let header = Header {
            flags: Flags {
                named,
                ..Flags::default()
            },
            original_due_ms: due_ms,
            ..Header::default()
        };
        let row = TimerRow {
            header,
            payload: payload(Op::Log, 0, target.kind, "a"),
        };
        let batch = batch
            .require_absent(key.encode())
            .put(key.encode(), row.encode());
        if named {
            let name = NameRow::of(&key, &row.header);
            batch.put(target.encode(), name.encode())
        } else {
            batch
        }
    }
}

/// Reads counter n, writes counter n + 1.
async fn count(
    ctx: &TimerCtx<'_>,
    timer: &DueTimer,
    times: u8,
    batch: Batch,
) -> Result<Batch, HandlerError> {
    let from = Key::from(format!("count/{}", times % 3));
    let to = Key::from(format!("count/{}", (times + 1) % 3));
    let keys = [from.clone(), to.clone()];
    let seen = ctx.reads().get_many(ctx.partition(), &keys).await?;
    let [from_seen, to_seen] = seen.as_slice() else {
        return Err(HandlerError::new("two keys were asked for"));
    };
    let sum = seen
        .iter()
        .flatten()
        .filter_map(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok())
        .fold(1 + u64::from(timer.kind().0), |sum, n| {
            (sum * 31 + n) % 1_000_003
        });
    Ok(batch
        .require_unchanged(from, from_seen.clone())
        .require_unchanged(to.clone(), to_seen.clone())
        .put(to, sum.to_string()))
}

/// Reads the number of the kind and writes the next.
async fn chain(ctx: &TimerCtx<'_>, timer: &DueTimer, batch: Batch) -> Result<Batch, HandlerError> {
    let key = chain_key(timer.kind());
    let seen = ctx.get(&key).await?;
    let seen = seen.and_then(|value| std::str::from_utf8(&value).ok()?.parse::<u64>().ok());
    Ok(batch.put(key, (seen.unwrap_or(0) + 1).to_string()))
}

/// Is not ready once.
async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Reads every row of the tally, writes how many there are and what they say, and puts or deletes
/// one of them.
async fn tally(
    ctx: &TimerCtx<'_>,
    timer: &DueTimer,
    times: u8,
    batch: Batch,
) -> Result<Batch, HandlerError> {
    let limit = usize::from(times) + 1;
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let range = ScanRange::new("tally/", "tally0", limit).after(cursor);
        let page = ctx.scan(&range).await?;
        seen.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let said: Vec<u8> = seen
        .iter()
        .flat_map(|(key, _)| key.strip_prefix(b"tally/").unwrap_or(key).to_vec())
        .collect();
    let batch = batch.put("tallied", said);
    Ok(match seen.get(usize::from(times)) {
        Some((key, value)) if seen.len() > 3 => batch
            .require_equals(key.clone(), value.clone())
            .delete(key.clone()),
        _ => batch.put(
            [b"tally/", timer.reference().as_ref()].concat(),
            seen.len().to_string(),
        ),
    })
}

/// Removes a named timer, dead or alive, if there is one.
async fn cut(ctx: &TimerCtx<'_>, target: &NameKey, batch: Batch) -> Result<Batch, HandlerError> {
    let name = target.encode();
    let seen = ctx.get(&name).await?;
    let batch = batch.require_unchanged(name.clone(), seen.clone());
    let Some(row) = seen else { return Ok(batch) };
    let row = NameRow::decode(&row)?;
    let occurrence = Occurrence {
        kind: target.kind,
        generation: row.generation,
        reference: target.reference.clone(),
    };
    let _any_state: NameState = row.state;
    Ok(batch
        .delete(name)
        .delete(row.target(target))
        .put(cut_key(&occurrence), ""))
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
            let Told { op, times, .. } = Told::of(timer)?;
            let failing = timer.attempt() <= u16::from(times);
            match op {
                Op::Fail if failing => Err(HandlerError::new("the call failed")),
                // The others hang in their settle.
                Op::Hang if failing && !times.is_multiple_of(2) => pending().await,
                Op::Sleep => {
                    let time = Duration::from_millis(500 * u64::from(times));
                    self.runtime.sleep(time).await;
                    Ok(())
                }
                _ => Ok(()),
            }
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

use dueline::store::{Batch, Key};
use dueline::timers::{DetachedHandler, DueTimer, Fired, HandlerError, TimerCtx, TimerHandler};
use dueline::{BoxFuture, Bytes};
use dueline_testkit::model::mark_effect;

/// Does what the first byte of the payload says, as often as the second says.
#[derive(Debug)]
pub(super) struct Told;

/// A payload for [`Told`].
pub(super) fn payload(what: u8, times: u8) -> Bytes {
    Bytes::copy_from_slice(&[what % 8, times % 4])
}

impl Told {
    async fn run(&self, ctx: &TimerCtx<'_>, timer: &DueTimer) -> Result<Fired, HandlerError> {
        let [what, times] = timer.payload()[..] else {
            return Err(HandlerError::undecodable("not two bytes"));
        };
        let is_failing = timer.attempt() <= u16::from(times);
        let done = mark_effect(Batch::new(), timer, None);
        match what {
            0 => Ok(Fired::Done(appended(ctx, timer, done).await?)),
            1 if is_failing => Err(HandlerError::new("as told")),
            2 => Ok(Fired::Dead {
                reason: "as told".to_owned(),
                batch: Batch::new(),
            }),
            3 if times > 0 => {
                let due_at_ms = if times == 1 {
                    ctx.now_ms() + 700
                } else {
                    timer.due_at_ms().saturating_sub(50)
                };
                Ok(Fired::Reschedule {
                    due_at_ms,
                    payload: payload(what, times - 1),
                    batch: mark_effect(Batch::new(), timer, Some(due_at_ms)),
                })
            }
            4 if is_failing => Ok(Fired::Retry {
                after_ms: Some(u64::from(times) * 700),
                reason: "later".to_owned(),
            }),
            5 if times > 1 => Err(HandlerError::undecodable("as told")),
            6 if is_failing => Ok(Fired::Done(done.require_present("never"))),
            _ => Ok(Fired::Done(done)),
        }
    }
}

/// Appends to a row that every such timer appends to, under a guard.
async fn appended(
    ctx: &TimerCtx<'_>,
    timer: &DueTimer,
    batch: Batch,
) -> Result<Batch, HandlerError> {
    let key = Key::from_static(b"log");
    let seen = ctx.get(&key).await?;
    let mut longer = seen.clone().unwrap_or_default().to_vec();
    longer.push(timer.kind().0);
    longer.extend_from_slice(timer.reference());
    Ok(batch.require_unchanged(key.clone(), seen).put(key, longer))
}

impl TimerHandler for Told {
    fn fire<'a>(
        &'a self,
        ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        Box::pin(self.run(ctx, timer))
    }
}

impl DetachedHandler for Told {
    type Output = ();

    fn call<'a>(
        &'a self,
        _ctx: &'a TimerCtx<'a>,
        timer: &'a DueTimer,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        let fails =
            matches!(timer.payload()[..], [7, times] if timer.attempt() <= u16::from(times));
        Box::pin(std::future::ready(if fails {
            Err(HandlerError::new("the call failed"))
        } else {
            Ok(())
        }))
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

import { TimerObject, type Handlers } from "@dueline/durable-object";

type Kinds = { remind: { text: string } };

/** An object that had an `alarm()` of its own, which goes on beside its new timers. */
export class Session extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return { remind: (timer) => console.log(timer.payload.text) };
  }

  /** What was `alarm()`. */
  protected override async ownAlarm(): Promise<void> {
    this.ctx.storage.sql.exec("DELETE FROM visits WHERE at < ?", Date.now() - 86_400_000);
    // What was `this.ctx.storage.setAlarm`.
    await this.timers.setAlarm(Date.now() + 3_600_000);
  }
}

import { TimerObject, type Handlers } from "@dueline/durable-object";

type Kinds = { close: { reason: string } };

export class Room extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return {
      close: (timer) => () => {
        this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS closed (reason TEXT, at INTEGER)");
        this.ctx.storage.sql.exec("INSERT INTO closed VALUES (?, ?)", timer.payload.reason, timer.now);
      },
    };
  }

  /** Closes the room half an hour after the last call of this. */
  async touch(): Promise<void> {
    await this.schedule("close", { name: "idle", after: 30 * 60_000, payload: { reason: "nobody came" } });
  }
}

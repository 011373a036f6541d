import { reschedule, TimerObject, type Handlers } from "@dueline/durable-object";

type Kinds = { sample: undefined };

const EVERY_MS = 60_000;

/** Samples once a minute, and once for all the minutes that were missed. */
export class Meter extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    const sql = this.ctx.storage.sql;
    return {
      sample: (timer) => {
        const missed = Math.floor((timer.now - timer.dueAt) / EVERY_MS);
        return reschedule({ dueAt: timer.dueAt + (missed + 1) * EVERY_MS }, () => {
          sql.exec("CREATE TABLE IF NOT EXISTS samples (at INTEGER, missed INTEGER)");
          sql.exec("INSERT INTO samples VALUES (?, ?)", timer.now, missed);
        });
      },
    };
  }

  /** Begins, or goes on as it was. */
  async begin(at: number): Promise<void> {
    await this.schedule("sample", { name: "every minute", policy: "ifAbsent", dueAt: at });
  }
}

import { DuelineError, TimerObject, type Handlers } from "@dueline/durable-object";

type Kinds = { begin: undefined; remind: { guest: string } };

const HOUR_MS = 3_600_000;

export class Meeting extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    const sql = this.ctx.storage.sql;
    return {
      begin: () => () => void sql.exec("DELETE FROM reminded"),
      remind: (timer) => () => void sql.exec("INSERT INTO reminded VALUES (?)", timer.payload.guest),
    };
  }

  /** Reminds each guest an hour before. If that cannot be scheduled for one of them, nothing is, and it says for whom. */
  async plan(at: number, guests: readonly string[]): Promise<string> {
    try {
      await this.scheduleMany([
        { kind: "begin", name: "begin", dueAt: at },
        ...guests.map((guest) => ({ kind: "remind", name: guest, dueAt: at - HOUR_MS, payload: { guest } }) as const),
      ]);
      return "planned";
    } catch (error) {
      if (error instanceof DuelineError && error.refused !== undefined) {
        return `not planned: ${error.refused.name} was refused as ${error.code}`;
      }
      throw error;
    }
  }
}

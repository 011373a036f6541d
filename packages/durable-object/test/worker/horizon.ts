// Timers that are due very late, or were due long ago, under an object that tells what each alarm did.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { router } from "./router.js";
import { timerRows } from "./rows.js";

type Kinds = { note: { text: string } };

export class Horizon extends DurableObject {
  readonly #sql = this.ctx.storage.sql;
  readonly #timers = new Timers<Kinds>(this.ctx, {
    handlers: {
      note: (timer) => () => {
        this.#sql.exec("INSERT INTO effects VALUES (?, ?, ?)", timer.payload.text, Date.now(), timer.dueAt);
      },
    },
  });

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS effects (text TEXT NOT NULL, at INTEGER NOT NULL, due INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS reports (report TEXT NOT NULL)",
    );
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    const report = await this.#timers.alarm(info);
    this.#sql.exec("INSERT INTO reports VALUES (?)", JSON.stringify(report));
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const [first, second] = args as [never, never];
      switch (op) {
        case "schedule":
          return this.#timers.schedule("note", first);
        // Numbers that JSON has no word for.
        case "scheduleAt":
          return this.#timers.schedule("note", { dueAt: Number(first), payload: { text: "" } });
        case "scheduleAfter":
          return this.#timers.schedule("note", { after: Number(first), payload: { text: "" } });
        case "scheduleDate":
          return this.#timers.schedule("note", { dueAt: new Date(first), payload: { text: "" } });
        case "reschedule":
          return this.#timers.reschedule("note", first, second);
        case "get":
          return (await this.#timers.get("note", first)) ?? null;
        case "setAlarm":
          return this.ctx.storage.setAlarm(first);
        case "alarm":
          return this.ctx.storage.getAlarm();
        case "rows":
          return timerRows(this.#sql).map(({ nextAt }) => nextAt);
        case "effects":
          return this.#sql.exec("SELECT * FROM effects ORDER BY rowid").toArray();
        case "reports":
          return this.#sql
            .exec<{ report: string }>("SELECT report FROM reports ORDER BY rowid")
            .toArray()
            .map(({ report }) => JSON.parse(report) as unknown);
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

export default router;

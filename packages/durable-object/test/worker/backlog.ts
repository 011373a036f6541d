// An object with a great backlog, which tells what each of its alarms did and answers in between.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { router } from "./router.js";
import { timerCount } from "./rows.js";

type Kinds = Record<"a" | "b" | "c" | "d", { number: number }>;
type Kind = keyof Kinds;

const KINDS: readonly Kind[] = ["a", "b", "c", "d"];

export class Backlog extends DurableObject {
  readonly #sql = this.ctx.storage.sql;
  readonly #timers: Timers<Kinds>;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS effects (number INTEGER PRIMARY KEY, times INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS alarms (began INTEGER NOT NULL, ended INTEGER NOT NULL, ticks INTEGER NOT NULL, fired INTEGER NOT NULL)",
    );
    const handler = (timer: { payload: { number: number } }) => () => {
      this.#sql.exec(
        "INSERT INTO effects VALUES (?, 1) ON CONFLICT (number) DO UPDATE SET times = times + 1",
        timer.payload.number,
      );
    };
    this.#timers = new Timers<Kinds>(ctx, { handlers: { a: handler, b: handler, c: handler, d: handler } });
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    const began = Date.now();
    const { ticks, fired } = await this.#timers.alarm(info);
    this.#sql.exec("INSERT INTO alarms VALUES (?, ?, ?, ?)", began, Date.now(), ticks, fired);
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const [first, second, third] = args as number[];
      switch (op) {
        case "hold":
          for (const kind of KINDS) {
            await this.#timers.pause(kind);
          }
          return null;
        case "release":
          for (const kind of KINDS) {
            await this.#timers.resume(kind);
          }
          return null;
        case "fill":
          return this.#fill(first ?? 0, second ?? 0, third ?? 0);
        case "count":
          return { effects: this.#count("effects"), alarms: this.#count("alarms") };
        case "schedule":
          return this.#timers.schedule("a", { name: `in between ${first}`, after: 86_400_000, payload: { number: -1 } });
        case "left":
          return timerCount(this.#sql);
        case "twice":
          return this.#sql.exec("SELECT COUNT(*) AS n FROM effects WHERE times <> 1").one().n;
        case "alarms":
          return this.#sql.exec("SELECT * FROM alarms ORDER BY rowid").toArray();
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  /** Schedules these numbers, overdue by an hour and in no order, over the kinds in turn. */
  async #fill(from: number, count: number, now: number): Promise<number> {
    const scheduled = Array.from({ length: count }, (_, index) => {
      const number = from + index;
      const dueAt = now - 3_600_000 + ((number * 7_919) % 3_000_000);
      return this.#timers.schedule(KINDS[number % KINDS.length] ?? "a", { dueAt, payload: { number } });
    });
    return (await Promise.all(scheduled)).length;
  }

  #count(table: "effects" | "alarms"): unknown {
    return this.#sql.exec(`SELECT COUNT(*) AS n FROM ${table}`).one().n;
  }
}

export default router;

// An object whose storage can be made to refuse, and which looks at its alarm behind everything it does.
import { Timers, type TimersOptions } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { router } from "./router.js";
import { standing } from "./rows.js";

type Kinds = {
  fail: { times: number };
  note: { text: string };
};

/** What the storage refuses. */
type Fault = "none" | "reads" | "alarm";

/** The faults of the objects, outside of them: an instance goes, its fault stays until it is healed. */
const faults = new Map<string, Fault>();

/** Calls of the methods of `target` through `calls`, everything else as it is. */
function through<T extends object>(target: T, calls: Partial<Record<keyof T, unknown>>): T {
  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(calls, name)) {
        return calls[name as keyof T];
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The state of an object with a storage that refuses as it is told to. */
function faulty(ctx: DurableObjectState): DurableObjectState {
  const fault = (): Fault => faults.get(ctx.id.toString()) ?? "none";
  const refuse = (what: string): never => {
    throw new Error(`the storage refuses ${what}`);
  };
  const { storage } = ctx;
  const sql = through(storage.sql, {
    exec: (statement: string, ...bindings: unknown[]) =>
      fault() === "reads" && statement.startsWith("SELECT") ? refuse("reads") : storage.sql.exec(statement, ...bindings),
  });
  return through(ctx, {
    storage: through(storage, {
      sql,
      setAlarm: (at: number) => (fault() === "alarm" ? refuse("an alarm") : storage.setAlarm(at)),
    }),
  });
}

export class Alarmed extends DurableObject {
  readonly #sql = this.ctx.storage.sql;
  readonly #timers: Timers<Kinds>;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS runs (name TEXT NOT NULL, attempt INTEGER NOT NULL, at INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS effects (name TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL, due INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS alarms (at INTEGER NOT NULL, retry INTEGER NOT NULL, thrown TEXT, report TEXT, standing TEXT)",
    );
    const options: TimersOptions<Kinds> = {
      handlers: {
        fail: {
          retry: { initial: 20, max: 40, jitter: 0, attempts: 25 },
          run: (timer) => {
            this.#sql.exec("INSERT INTO runs VALUES (?, ?, ?)", timer.name ?? "", timer.attempt, Date.now());
            if (timer.attempt <= timer.payload.times) {
              throw new Error(`failed run ${timer.attempt}`);
            }
            return () => this.#effect(timer, "at last");
          },
        },
        note: (timer) => () => this.#effect(timer, timer.payload.text),
      },
    };
    this.#timers = new Timers<Kinds>(faulty(ctx), options);
  }

  #effect(timer: { name?: string; dueAt: number }, text: string): void {
    this.#sql.exec("INSERT INTO effects VALUES (?, ?, ?, ?)", timer.name ?? "", text, Date.now(), timer.dueAt);
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    const at = Date.now();
    const retries = info?.retryCount ?? 0;
    try {
      const report = await this.#timers.alarm(info);
      const behind = await standing(this.ctx.storage);
      this.#sql.exec("INSERT INTO alarms VALUES (?, ?, NULL, ?, ?)", at, retries, JSON.stringify(report), JSON.stringify(behind));
    } catch (thrown) {
      this.#sql.exec("INSERT INTO alarms VALUES (?, ?, ?, NULL, NULL)", at, retries, String(thrown));
      throw thrown;
    }
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const [first, second] = args as [never, never];
      switch (op) {
        case "schedule":
          return this.#timers.schedule(first, second);
        case "scheduleAt":
          return this.#scheduleAt(first, second);
        case "get":
          return (await this.#timers.get(first, second)) ?? null;
        // From here on nothing goes to the timers.
        case "fault":
          faults.set(this.ctx.id.toString(), first);
          return null;
        case "setAlarm":
          return this.ctx.storage.setAlarm(first);
        case "deleteAlarm":
          return this.ctx.storage.deleteAlarm();
        case "standing":
          return standing(this.ctx.storage);
        case "runs":
          return this.#sql.exec("SELECT * FROM runs ORDER BY rowid").toArray();
        case "effects":
          return this.#sql.exec("SELECT * FROM effects ORDER BY rowid").toArray();
        case "alarms":
          return this.#alarms();
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  /** A timer that is due soon, and an alarm elsewhere, or none, before its own can come. */
  #scheduleAt(name: string, alarmAt: number | null): Promise<number> {
    return this.ctx.blockConcurrencyWhile(async () => {
      const { dueAt } = await this.#timers.schedule("note", { name, after: 50, payload: { text: name } });
      await (alarmAt === null ? this.ctx.storage.deleteAlarm() : this.ctx.storage.setAlarm(alarmAt));
      return dueAt;
    });
  }

  #alarms(): unknown {
    const found = this.#sql.exec<{ at: number; retry: number; thrown: string | null; report: string | null; standing: string | null }>(
      "SELECT * FROM alarms ORDER BY rowid",
    );
    return found.toArray().map((row) => ({
      ...row,
      report: JSON.parse(row.report ?? "null") as unknown,
      standing: JSON.parse(row.standing ?? "null") as unknown,
    }));
  }
}

export default router;

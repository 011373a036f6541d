// The worker under test: an object per theme, driven over HTTP by the tests.
import { TimerObject, dead, detached, done, reschedule, retry, type Handlers } from "@dueline/durable-object";
import { answer } from "./answer.js";

type Kinds = {
  write: { text: string };
  slow: { ms: number };
  fail: { times: number };
  throwInEffects: { text: string };
  asyncEffects: undefined;
  scheduleInEffects: undefined;
  again: { left: number };
  giveUp: undefined;
  chain: { left: number };
  call: { fail?: boolean; ms: number };
  bytes: Uint8Array;
};

export class Everything extends TimerObject<Kinds> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    // Tables of the names that the engine uses elsewhere: they are the object's own.
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS kv (k TEXT PRIMARY KEY, v TEXT); " +
        "CREATE TABLE IF NOT EXISTS meta (x TEXT); " +
        "CREATE TABLE IF NOT EXISTS effects (id INTEGER PRIMARY KEY, text TEXT, at INTEGER, due INTEGER, attempt INTEGER)",
    );
  }

  #note(text: string, timer: { dueAt: number; attempt: number }): void {
    this.#sql.exec(
      "INSERT INTO effects (text, at, due, attempt) VALUES (?, ?, ?, ?)",
      text,
      Date.now(),
      timer.dueAt,
      timer.attempt,
    );
  }

  protected handlers(): Handlers<Kinds> {
    return {
      write: (timer) => () => this.#note(timer.payload.text, timer),
      slow: async (timer) => {
        await new Promise((resolve) => setTimeout(resolve, timer.payload.ms));
        return () => this.#note("slow", timer);
      },
      fail: {
        retry: { initial: 20, max: 20, jitter: 0, attempts: 3 },
        run: (timer) => {
          if (timer.attempt <= timer.payload.times) {
            throw new Error(`failed run ${timer.attempt}`);
          }
          return () => this.#note("at last", timer);
        },
      },
      throwInEffects: {
        retry: { initial: 20, max: 20, jitter: 0 },
        run: (timer) => () => {
          this.#note(timer.payload.text, timer);
          if (timer.attempt < 3) {
            throw new Error("no effects");
          }
        },
      },
      asyncEffects: {
        retry: { attempts: 1 },
        run: (timer) => () => {
          this.#note("must not stay", timer);
          return Promise.resolve() as unknown as void;
        },
      },
      scheduleInEffects: {
        retry: { attempts: 1 },
        run: (timer) => () => {
          this.schedule("write", { after: 0, payload: { text: "must not be" } }).catch((error: Error) => {
            this.#note(error.message, timer);
          });
        },
      },
      again: (timer) => {
        const { left } = timer.payload;
        const effects = () => this.#note(`left ${left}`, timer);
        return left === 0 ? done(effects) : reschedule({ dueAt: timer.dueAt + 10, payload: { left: left - 1 } }, effects);
      },
      giveUp: (timer) => dead("nobody wants it", () => this.#note("given up", timer)),
      chain: (timer) => {
        const { left } = timer.payload;
        return done<Kinds>({
          effects: () => this.#note(`chain ${left}`, timer),
          schedule: left === 0 ? [] : [{ kind: "chain", name: `link-${left}`, after: 0, payload: { left: left - 1 } }],
        });
      },
      call: detached({
        retry: { initial: 20, max: 20, jitter: 0, attempts: 2 },
        call: async (timer) => {
          await new Promise((resolve) => setTimeout(resolve, timer.payload.ms));
          if (timer.payload.fail) {
            throw new Error("the receiver is down");
          }
          return { said: timer.occurrenceId };
        },
        settle: (timer, output) => (output.said === "" ? retry("said nothing") : () => this.#note(output.said, timer)),
      }),
      bytes: (timer) => () => this.#note(`bytes ${[...timer.payload].join(",")}`, timer),
    };
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const [kind, timer, more] = args as [never, never, never];
      switch (op) {
        case "schedule":
          return this.schedule(kind, timer);
        case "scheduleBytes":
          return this.schedule("bytes", { after: 0, payload: new Uint8Array(args as number[]) });
        case "cancel":
          return (await this.cancel(kind, timer, more)) ?? null;
        case "get":
          return (await this.get(kind, timer)) ?? null;
        case "list":
          return this.list(kind, timer);
        case "reschedule":
          return this.reschedule(kind, timer, more);
        case "pause":
          return this.pause(kind, timer);
        case "resume":
          return this.resume(kind);
        case "paused":
          return this.timers.paused();
        case "dead":
          return this.deadLetters.list(kind);
        case "requeue":
          return (await this.deadLetters.requeue(kind)) ?? null;
        case "requeueAll":
          return this.deadLetters.requeueAll(kind);
        case "purge":
          return this.deadLetters.purge(kind);
        case "effects":
          return this.#sql.exec("SELECT * FROM effects ORDER BY id").toArray();
        case "alarm":
          return this.ctx.storage.getAlarm();
        case "trap":
          return trapped(() => this.schedule("write", { after: 60_000, payload: { text: "never" } }));
        case "rows":
          return this.#rows();
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  #rows(): unknown {
    const count = (table: string) => this.#sql.exec(`SELECT COUNT(*) AS n FROM ${table}`).one().n;
    return { kv: count("dueline_kv"), wake: count("dueline_wake") };
  }
}

export { Adopted } from "./adopted.js";
export { Counted } from "./counted.js";

/** The engine draws so many numbers at a time. */
const DRAWN = 64;

/**
 * Breaks the engine in the middle of a call: an exception of the platform's runs through the module's frames,
 * which leaves it as a trap does. Each call draws a number, so one of these has to ask for more.
 */
async function trapped(call: () => Promise<unknown>): Promise<unknown> {
  const original = crypto.getRandomValues;
  crypto.getRandomValues = () => {
    throw new Error("no entropy");
  };
  try {
    for (let calls = 0; calls < DRAWN; calls += 1) {
      await call();
    }
    return await call();
  } finally {
    crypto.getRandomValues = original;
  }
}

export default {
  async fetch(request: Request, env: Record<string, DurableObjectNamespace>): Promise<Response> {
    const [, namespace = "", name = ""] = new URL(request.url).pathname.split("/");
    const objects = env[namespace];
    if (objects === undefined) {
      return new Response("no such namespace", { status: 404 });
    }
    return objects.get(objects.idFromName(name)).fetch(request);
  },
};

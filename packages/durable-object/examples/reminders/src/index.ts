// The reminders of a user: each is sent to a webhook at its time, once or again and again. The class has a
// base of its own and composes the timers.
import { dead, detached, done, reschedule, retry, Timers, type TimerView } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";

interface Reminder {
  readonly text: string;
  /** For one that comes again. */
  readonly everyMs?: number;
}

type Kinds = { remind: Reminder };

interface Env {
  readonly USERS: DurableObjectNamespace<Reminders>;
  readonly WEBHOOK_URL: string;
}

export class Reminders extends DurableObject<Env> {
  readonly #sql = this.ctx.storage.sql;
  readonly #timers = new Timers<Kinds>(this.ctx, {
    handlers: () => ({
      remind: detached({
        // Goes out beside others, and again after a crash: the webhook knows a repeat by its key.
        call: async (timer) => {
          const response = await fetch(this.env.WEBHOOK_URL, {
            method: "POST",
            headers: { "idempotency-key": timer.occurrenceId },
            body: JSON.stringify({ name: timer.name, text: timer.payload.text }),
            signal: timer.signal,
          });
          return response.status;
        },
        // Decides, in the commit that removes or moves the timer.
        settle: (timer, status) => {
          if (status >= 500 || status === 429) {
            return retry(`the webhook answered ${status}`);
          }
          if (status >= 400) {
            return dead(`the webhook answered ${status}`);
          }
          const effects = (): void => void this.#sql.exec("INSERT INTO sent VALUES (?, ?)", timer.name ?? "", timer.dueAt);
          const { everyMs } = timer.payload;
          // From the due and not from now, so that it does not drift.
          return everyMs === undefined ? done(effects) : reschedule({ dueAt: timer.dueAt + everyMs }, effects);
        },
        retry: { attempts: 8, initial: 1_000, max: 3_600_000 },
      }),
    }),
  });

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS sent (name TEXT NOT NULL, due_at INTEGER NOT NULL)");
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  async remind(name: string, dueAt: number, reminder: Reminder): Promise<void> {
    await this.#timers.schedule("remind", { name, dueAt, payload: reminder });
  }

  async forget(name: string): Promise<boolean> {
    return (await this.#timers.cancel("remind", name)) !== undefined;
  }

  async pending(): Promise<readonly TimerView<"remind", Reminder>[]> {
    return (await this.#timers.list("remind")).items;
  }

  async sent(): Promise<string[]> {
    return this.#sql.exec<{ name: string }>("SELECT name FROM sent ORDER BY rowid").toArray().map(({ name }) => name);
  }
}

/** `GET /USER`, `GET /USER/sent`, `PUT /USER/NAME?dueAt=MS` with a reminder, `DELETE /USER/NAME`. */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const [, user = "", name = ""] = url.pathname.split("/");
    const object = env.USERS.get(env.USERS.idFromName(user));
    if (request.method === "PUT") {
      await object.remind(name, Number(url.searchParams.get("dueAt")), await request.json<Reminder>());
      return new Response(null, { status: 204 });
    }
    if (request.method === "DELETE") {
      return new Response(null, { status: (await object.forget(name)) ? 204 : 404 });
    }
    return Response.json(name === "sent" ? await object.sent() : await object.pending());
  },
};

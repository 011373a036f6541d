// Timers whose objects are killed: each effect is a row, and a second one of the same timer would be seen.
import { TimerObject, detached, type Handlers } from "@dueline/durable-object";
import { answer } from "./answer.js";
import { router } from "./router.js";
import { timerCount } from "./rows.js";

type Kinds = {
  inline: undefined;
  waiting: undefined;
  grouped: undefined;
  calling: undefined;
};

interface Wanted {
  readonly kind: keyof Kinds;
  readonly name: string;
  readonly dueAt: number;
}

export class Killed extends TimerObject<Kinds> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS effects (name TEXT NOT NULL, at INTEGER NOT NULL, due INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS calls (name TEXT NOT NULL, occurrence TEXT NOT NULL)",
    );
  }

  #effect(timer: { name?: string; dueAt: number }): void {
    this.#sql.exec("INSERT INTO effects VALUES (?, ?, ?)", timer.name ?? "", Date.now(), timer.dueAt);
  }

  protected handlers(): Handlers<Kinds> {
    return {
      inline: (timer) => () => this.#effect(timer),
      waiting: async (timer) => {
        await new Promise((resolve) => setTimeout(resolve, 3));
        return () => this.#effect(timer);
      },
      grouped: { group: 16, run: (timer) => () => this.#effect(timer) },
      calling: detached({
        deadline: 1_000,
        call: async (timer) => {
          this.#sql.exec("INSERT INTO calls VALUES (?, ?)", timer.name ?? "", timer.occurrenceId);
          await new Promise((resolve) => setTimeout(resolve, 40));
        },
        settle: (timer) => () => this.#effect(timer),
      }),
    };
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "schedule": {
          const wanted = args[0] as readonly Wanted[];
          await Promise.all(wanted.map(({ kind, name, dueAt }) => this.schedule(kind, { name, dueAt })));
          return wanted.length;
        }
        case "scheduleMany":
          return (await this.scheduleMany(args[0] as readonly Wanted[])).length;
        case "names": {
          const names: string[] = [];
          for (let after: string | undefined; ; ) {
            const { items, next } = await this.list("inline", { prefix: "", limit: 1_000, ...(after === undefined ? {} : { after }) });
            names.push(...items.map(({ name }) => name ?? ""));
            if (next === undefined) {
              return names;
            }
            after = next;
          }
        }
        case "effects":
          return this.#sql.exec("SELECT name, at, due FROM effects").toArray();
        case "calls":
          return this.#sql.exec("SELECT name, occurrence FROM calls").toArray();
        case "left":
          return { timers: timerCount(this.#sql), alarm: await this.ctx.storage.getAlarm() };
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

export default router;

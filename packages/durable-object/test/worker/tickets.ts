// Seats that are held in an object that is killed. What each hold and each end writes are rows, and a second one of
// the same ticket would be seen.
import { TimerObject, Timers, type BuiltIns } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { countingState } from "./counting.js";
import { router } from "./router.js";

interface Wanted {
  readonly resource: string;
  readonly ttl: number;
  readonly session?: string;
}

export class Venue extends TimerObject<Record<string, never>> {
  protected readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec(
      "CREATE TABLE IF NOT EXISTS held (resource TEXT NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS used (id TEXT NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS ends (id TEXT NOT NULL, resource TEXT NOT NULL, ending TEXT NOT NULL, at INTEGER NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS aborts (session TEXT NOT NULL)",
    );
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      tickets: {
        onClose: ({ id, resource }, end) => {
          return () => void this.sql.exec("INSERT INTO ends VALUES (?, ?, ?, ?)", id, resource, end, Date.now());
        },
      },
    };
  }

  override async fetch(request: Request): Promise<Response> {
    const { tickets } = this.timers;
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "open": {
          const wanted = args[0] as Wanted;
          const effects = () => void this.sql.exec("INSERT INTO held VALUES (?)", wanted.resource);
          return tickets.open({ ...wanted, actor: "ann", key: `wants ${wanted.resource}`, resourceMax: 1, effects });
        }
        case "consume": {
          const id = args[0] as string;
          return tickets.consume(id, { effects: () => void this.sql.exec("INSERT INTO used VALUES (?)", id) });
        }
        case "release":
          return tickets.release(args[0] as string);
        case "seen":
          return {
            held: this.sql.exec("SELECT resource FROM held").toArray().map(({ resource }) => resource),
            used: this.sql.exec("SELECT id FROM used").toArray().map(({ id }) => id),
            ends: this.sql.exec("SELECT * FROM ends").toArray(),
            aborts: this.sql.exec("SELECT session FROM aborts").toArray().map(({ session }) => session),
            open: await tickets.openCount({ actor: "ann" }),
          };
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

/** Seats with a checkout that is to be aborted. */
export class Lounge extends Venue {
  protected override builtIns(): BuiltIns {
    const abort = async ({ session }: { readonly session: string }): Promise<void> => {
      this.sql.exec("INSERT INTO aborts VALUES (?)", session);
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    return { tickets: { ...super.builtIns().tickets, abort } };
  }
}

/** An object that counts what its tickets write. */
export class CountedTickets extends DurableObject<unknown> {
  #rows = 0;
  readonly #timers: Timers;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    const counted = countingState(ctx, ({ rowsWritten }) => {
      this.#rows += rowsWritten;
    });
    this.#timers = new Timers(counted, { handlers: {}, builtIns: { tickets: {} } });
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  override async fetch(request: Request): Promise<Response> {
    const { tickets } = this.#timers;
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "open": {
          // All of them expire in one alarm.
          const at = Date.now() + 500;
          for (let number = 0; number < (args[0] as number); number += 1) {
            const ttl = at - Date.now();
            await tickets.open({ resource: `seat-${number}`, actor: `actor-${number}`, key: `key-${number}`, ttl });
          }
          return this.#rows;
        }
        default:
          return { rows: this.#rows, open: (await tickets.list()).items.length, alarm: await this.ctx.storage.getAlarm() };
      }
    });
  }
}

export default router;

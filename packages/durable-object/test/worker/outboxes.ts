// A shop whose orders are told to somebody, in an object that is killed. What the sink saw and what the effects
// wrote are rows, so a second effect of one order would be seen.
import { SinkError, TimerObject, Timers, type BuiltIns } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { countingState } from "./counting.js";
import { router } from "./router.js";

type Receiver = "up" | "down" | "hangs";

export class Shop extends TimerObject<Record<string, never>> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS orders (id TEXT NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS calls (id TEXT NOT NULL, sequence INTEGER, attempt INTEGER, receiver TEXT); " +
        "CREATE TABLE IF NOT EXISTS receiver (now TEXT NOT NULL)",
    );
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      outboxes: {
        paid: async ({ id, sequence, attempt, payload }) => {
          const receiver = this.#receiver();
          if ((payload as { order: string }).order !== id) {
            throw new SinkError("refused", "that is another order's");
          }
          this.#sql.exec("INSERT INTO calls VALUES (?, ?, ?, ?)", id, sequence, attempt, receiver);
          await new Promise<void>((resolve) => receiver !== "hangs" && setTimeout(resolve, 2));
          if (receiver === "down") {
            throw new SinkError("unavailable", "503");
          }
        },
      },
    };
  }

  #receiver(): Receiver {
    const [row] = this.#sql.exec<{ now: Receiver }>("SELECT now FROM receiver").toArray();
    return row?.now ?? "up";
  }

  override async fetch(request: Request): Promise<Response> {
    const { outboxes } = this.timers;
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "receiver":
          this.#sql.exec("DELETE FROM receiver; INSERT INTO receiver VALUES (?)", args[0]);
          await this.ctx.storage.sync();
          return;
        case "order": {
          const id = args[0] as string;
          const effects = () => void this.#sql.exec("INSERT INTO orders VALUES (?)", id);
          return outboxes.append("paid", [{ id, payload: { order: id } }], { effects });
        }
        case "wake":
          return outboxes.wake("paid");
        case "seen":
          return {
            orders: this.#sql.exec("SELECT id FROM orders ORDER BY rowid").toArray().map(({ id }) => id),
            calls: this.#sql.exec("SELECT * FROM calls ORDER BY rowid").toArray(),
            backlog: (await outboxes.backlog("paid")).count,
            dead: (await outboxes.dead("paid")).items.length,
          };
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

/** An object that counts what its outbox writes. */
export class CountedOutbox extends DurableObject<unknown> {
  #rows = 0;
  readonly #timers: Timers;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    const counted = countingState(ctx, ({ rowsWritten }) => {
      this.#rows += rowsWritten;
    });
    this.#timers = new Timers(counted, { handlers: {}, builtIns: { outboxes: { mail: () => undefined } } });
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      if (op === "append") {
        const outcomes = Array.from({ length: args[0] as number }, (_, index) => ({ id: String(index) }));
        const before = this.#rows;
        await this.#timers.outboxes.append("mail", outcomes);
        return this.#rows - before;
      }
      return {
        rows: this.#rows,
        count: (await this.#timers.outboxes.backlog("mail")).count,
        alarm: await this.ctx.storage.getAlarm(),
      };
    });
  }
}

export default router;

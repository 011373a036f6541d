// An object that counts what the timers write: its `sql` stands between them and the platform's.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";

/** The object's state, with the rows of every `exec` counted. */
export function countingState(ctx: DurableObjectState, count: (rows: number) => void): DurableObjectState {
  const storage = counting(ctx.storage, count);
  return new Proxy(ctx, {
    get: (target, name) => {
      if (name === "storage") {
        return storage;
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The storage, with every `exec` counted. */
function counting(storage: DurableObjectStorage, count: (rows: number) => void): DurableObjectStorage {
  const sql = new Proxy(storage.sql, {
    get: (target, name) => {
      if (name !== "exec") {
        return Reflect.get(target, name, target) as unknown;
      }
      return (statement: string, ...bindings: unknown[]) => {
        const cursor = target.exec(statement, ...bindings);
        count(cursor.rowsWritten);
        return cursor;
      };
    },
  });
  return new Proxy(storage, {
    get: (target, name) => {
      if (name === "sql") {
        return sql;
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export class Counted extends DurableObject {
  #rows = 0;
  readonly #timers: Timers<{ tick: undefined }>;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as Cloudflare.Env);
    const counted = countingState(ctx, (rows) => {
      this.#rows += rows;
    });
    this.#timers = new Timers<{ tick: undefined }>(counted, { handlers: { tick: () => undefined } });
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  override async fetch(request: Request): Promise<Response> {
    const at = Date.now() + 3_600_000;
    return answer(request, async ({ op }) => {
      if (op === "warm") {
        await this.#timers.schedule("tick", { dueAt: at });
        return this.#timers.schedule("tick", { dueAt: at, name: "warm" });
      }
      return {
        anonymous: await this.#written(() => this.#timers.schedule("tick", { dueAt: at - 100_000 })),
        named: await this.#written(() => this.#timers.schedule("tick", { dueAt: at - 200_000, name: "n" })),
        later: await this.#written(() => this.#timers.schedule("tick", { dueAt: at + 10 })),
        laterNamed: await this.#written(() => this.#timers.schedule("tick", { dueAt: at + 20, name: "m" })),
      };
    });
  }

  async #written(work: () => Promise<unknown>): Promise<number> {
    const before = this.#rows;
    await work();
    return this.#rows - before;
  }
}

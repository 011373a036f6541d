// An object that counts what the timers write: its `sql` stands between them and the platform's.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { Counting } from "./counting.js";

export class Counted extends DurableObject {
  readonly #counting: Counting;
  readonly #timers: Timers<{ tick: undefined }>;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as Cloudflare.Env);
    this.#counting = new Counting(ctx);
    this.#timers = new Timers<{ tick: undefined }>(this.#counting.ctx, { handlers: { tick: () => undefined } });
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
    return (await this.#counting.during(work)).written;
  }
}

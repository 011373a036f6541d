// An object that counts what the timers write: its `sql` stands between them and the platform's.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { Counting, type Counted as Count } from "./counting.js";

/** Timers of one call. */
const COUNT = 100;

export class Counted extends DurableObject {
  readonly #counting: Counting;
  readonly #timers: Timers<{ tick: undefined }>;
  /** Statements of the last alarm. */
  #alarm: number | null = null;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as Cloudflare.Env);
    this.#counting = new Counting(ctx);
    this.#timers = new Timers<{ tick: undefined }>(this.#counting.ctx, { handlers: { tick: () => undefined } });
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#counting.during(() => this.#timers.alarm(info));
    this.#alarm = this.#counting.statements;
  }

  override async fetch(request: Request): Promise<Response> {
    const at = Date.now() + 3_600_000;
    return answer(request, async ({ op, args }) => {
      if (op === "warm") {
        await this.#timers.schedule("tick", { dueAt: at });
        return this.#timers.schedule("tick", { dueAt: at, name: "warm" });
      }
      if (op === "statements") {
        return this.#statements(at);
      }
      if (op === "soon") {
        return this.#soon(Number(args[0]));
      }
      if (op === "alarm") {
        return this.#alarm;
      }
      if (op === "many") {
        return this.#many(at);
      }
      return {
        anonymous: await this.#written(() => this.#timers.schedule("tick", { dueAt: at - 100_000 })),
        named: await this.#written(() => this.#timers.schedule("tick", { dueAt: at - 200_000, name: "n" })),
        later: await this.#written(() => this.#timers.schedule("tick", { dueAt: at + 10 })),
        laterNamed: await this.#written(() => this.#timers.schedule("tick", { dueAt: at + 20, name: "m" })),
      };
    });
  }

  /** Timers for one alarm: of one due, and no alarm comes before all of them are there. */
  #soon(timers: number): Promise<void> {
    return this.ctx.blockConcurrencyWhile(async () => {
      this.#alarm = null;
      const dueAt = Date.now() + 50;
      for (let left = timers; left > 0; left -= 1) {
        await this.#timers.schedule("tick", { dueAt });
      }
    });
  }

  /** Of one schedule: behind what is pending, with a name that is new, with one that is known, and before it all. */
  async #statements(at: number): Promise<Record<string, number>> {
    const one = async (dueAt: number, name?: string): Promise<number> => {
      await this.#counting.during(() => this.#timers.schedule("tick", { dueAt, ...(name === undefined ? {} : { name }) }));
      return this.#counting.statements;
    };
    return { later: await one(at + 10), named: await one(at + 20, "s"), replaced: await one(at + 30, "s"), sooner: await one(at - 100_000) };
  }

  /** As many as `COUNT` at a time: due before everything that is pending, or behind it; new names, and known ones. */
  async #many(at: number): Promise<Record<string, Count>> {
    const call = (dueAt: number, nameOf?: (index: number) => string): Promise<Count> =>
      this.#counting.during(() =>
        this.#timers.scheduleMany(
          Array.from({ length: COUNT }, (_, index) => ({
            kind: "tick",
            dueAt: dueAt - index,
            ...(nameOf === undefined ? {} : { name: nameOf(index) }),
          })),
        ),
      );
    const one = (dueAt: number, name?: string): Promise<Count> =>
      this.#counting.during(() => this.#timers.schedule("tick", { dueAt, ...(name === undefined ? {} : { name }) }));
    return {
      one: await one(at - 250_000),
      oneNamed: await one(at - 260_000, "one"),
      oneReplaced: await one(at - 50_000, "one"),
      anonymous: await call(at - 300_000),
      named: await call(at - 400_000, (index) => `many ${index}`),
      later: await call(at + 1_000),
      laterNamed: await call(at + 2_000, (index) => `later ${index}`),
      replaced: await call(at + 3_000, (index) => `many ${index}`),
      none: await this.#counting.during(() => this.#timers.scheduleMany([])),
    };
  }

  async #written(work: () => Promise<unknown>): Promise<number> {
    return (await this.#counting.during(work)).written;
  }
}

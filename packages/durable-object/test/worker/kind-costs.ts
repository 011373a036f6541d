// An object that counts what its built-in kinds read and write.
import { Timers } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { Counting, type Counted } from "./counting.js";
import { router } from "./router.js";

const HOUR_MS = 3_600_000;
/** So long that no window ends beside the test. */
const WINDOW_MS = 400 * 24 * HOUR_MS;

export class KindCosts extends DurableObject {
  readonly #counting: Counting;
  readonly #timers: Timers<Record<string, never>>;
  #alarm: Counted | null = null;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as Cloudflare.Env);
    this.#counting = new Counting(ctx);
    this.#timers = new Timers<Record<string, never>>(this.#counting.ctx, {
      handlers: {},
      builtIns: { reservations: {}, quotas: { warm: { window: WINDOW_MS }, day: { window: WINDOW_MS } } },
    });
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    this.#alarm = await this.#counting.during(() => this.#timers.alarm(info));
  }

  override async fetch(request: Request): Promise<Response> {
    const { reservations } = this.#timers;
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "reservations":
          return this.#reservations();
        case "quotas":
          return this.#quotas();
        case "reserve": {
          const [id, commitWithin, keepFor] = args as [string, number, number];
          this.#alarm = null;
          const { reservation } = await reservations.reserve(id, { commitWithin, skew: 0, keepFor });
          return reservation.serial;
        }
        case "commit":
          return reservations.commit(args[0] as string, { serial: args[1] as string });
        case "alarm":
          return this.#alarm;
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  /** Reservations behind what is pending already, so that the alarm stays where it is. */
  async #reservations(): Promise<Record<string, Counted>> {
    const { reservations } = this.#timers;
    await reservations.reserve("warm", { commitWithin: HOUR_MS });
    const count = (work: () => Promise<unknown>): Promise<Counted> => this.#counting.during(work);
    const terms = { commitWithin: 2 * HOUR_MS };
    const counts: Record<string, Counted> = {};
    counts.reserve = await count(() => reservations.reserve("a", terms));
    counts.sooner = await count(() => reservations.reserve("sooner", { commitWithin: HOUR_MS / 2 }));
    counts.exists = await count(() => reservations.reserve("a", terms));
    const serial = (await reservations.get("a"))?.serial ?? "";
    counts.get = await count(() => reservations.get("a"));
    counts.extend = await count(() => reservations.extend("a", { serial, detail: "x", commitWithin: 3 * HOUR_MS }));
    counts.commit = await count(() => reservations.commit("a", { serial }));
    const { serial: other } = (await reservations.reserve("b", terms)).reservation;
    counts.abort = await count(() => reservations.abort("b", { serial: other, reason: "x" }));
    counts.endedBefore = await count(() => reservations.abort("a", { serial, reason: "" }));
    counts.forget = await count(() => reservations.forget("a", { serial }));
    return counts;
  }

  async #quotas(): Promise<Record<string, Counted>> {
    const { reservations, quotas } = this.#timers;
    await reservations.reserve("warm", { commitWithin: HOUR_MS });
    await quotas.charge("warm", [1]);
    const count = (work: () => Promise<unknown>): Promise<Counted> => this.#counting.during(work);
    return {
      first: await count(() => quotas.charge("day", [1, 512])),
      next: await count(() => quotas.charge("day", [1, 512], { limits: [10, 4_096] })),
      refused: await count(() => quotas.charge("day", [1, 512], { limits: [2, 4_096] })),
      usage: await count(() => quotas.usage("day")),
    };
  }
}

export default router;

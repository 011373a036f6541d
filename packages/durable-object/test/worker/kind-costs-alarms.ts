// Objects that count what their leases, tickets, outboxes and gated records read and write, verbs and alarms.
import { Timers, type BuiltIns } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { Counting, type Counted } from "./counting.js";
import { router } from "./router.js";

const HOUR_MS = 3_600_000;
const SOON_MS = 20;
/** Behind what is pending already. */
const LATER_MS = 2 * HOUR_MS;

type Counts = Record<string, Counted>;
type Count = (work: () => Promise<unknown>) => Promise<Counted>;

export class KindAlarms extends DurableObject {
  readonly #counting: Counting;
  protected readonly timers: Timers<Record<string, never>>;
  #alarms: Counted[] = [];

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as Cloudflare.Env);
    this.#counting = new Counting(ctx);
    this.timers = new Timers<Record<string, never>>(this.#counting.ctx, { handlers: {}, builtIns: this.builtIns() });
  }

  protected builtIns(): BuiltIns {
    return {
      leases: {},
      tickets: {},
      outboxes: { mail: () => undefined },
      gated: { look: ({ keys }) => keys.map(() => true), release: () => undefined },
      reservations: {},
    };
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    this.#alarms.push(await this.#counting.during(() => this.timers.alarm(info)));
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op }) => {
      if (op === "alarms") {
        // What is pending for a while keeps the object's alarm: there is nothing more to do by then.
        const at = (await this.ctx.storage.getAlarm()) ?? 0;
        return { alarms: this.#alarms, isAtRest: at > Date.now() + HOUR_MS / 2 };
      }
      // Something is due before, as in an object that is at work.
      await this.timers.reservations.reserve("warm", { commitWithin: HOUR_MS });
      this.#alarms = [];
      switch (op) {
        case "leases":
          return this.#counts((count) => this.#leases(count));
        case "tickets":
          return this.#counts((count) => this.#tickets(count));
        case "outboxes":
          return this.#counts((count) => this.#outboxes(count));
        case "gated":
          return this.#counts((count) => this.#gated(count));
        case "expire a lease":
          return this.#count(() => this.timers.leases.grant("short", { owner: "ann", term: SOON_MS }));
        case "expire a ticket":
          return this.#count(() => this.timers.tickets.open({ resource: "seat", actor: "ann", key: "1", session: "s", ttl: SOON_MS }));
        case "deliver":
          return this.#count(() => this.timers.outboxes.append("mail", [{ id: "1", payload: "hello" }]));
        case "release":
          return this.#count(() => this.timers.gated.add("post", [{ place: "images", key: "a" }]));
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }

  /** Counts a verb while no alarm comes between. */
  #count(work: () => Promise<unknown>): Promise<Counted> {
    return this.ctx.blockConcurrencyWhile(() => this.#counting.during(work));
  }

  #counts(work: (count: Count) => Promise<Counts>): Promise<Counts> {
    const count: Count = async (counted) => {
      // Two verbs of one millisecond have one due, and the second looks at more: in real use they rarely are.
      await new Promise((resolve) => setTimeout(resolve, 5));
      return this.#counting.during(counted);
    };
    return this.ctx.blockConcurrencyWhile(() => work(count));
  }

  async #leases(count: Count): Promise<Counts> {
    const { leases } = this.timers;
    const terms = { owner: "ann", term: LATER_MS };
    await leases.grant("warm", terms);
    const counts: Counts = {};
    counts.grant = await count(() => leases.grant("a", terms));
    counts.sooner = await count(() => leases.grant("sooner", { owner: "ann", term: HOUR_MS / 2 }));
    counts.held = await count(() => leases.grant("a", { ...terms, owner: "bob" }));
    counts.get = await count(() => leases.get("a"));
    counts.renew = await count(() => leases.renew("a", { epoch: 1, term: 2 * LATER_MS }));
    counts.fenced = await count(() => leases.fenced("a", { epoch: 1 }, () => undefined));
    counts.fencedOut = await count(() => leases.fenced("a", { epoch: 9 }, () => undefined));
    counts.release = await count(() => leases.release("a", { epoch: 1 }));
    counts.again = await count(() => leases.grant("a", terms));
    await leases.release("a", { epoch: 2 });
    counts.forget = await count(() => leases.forget("a"));
    return counts;
  }

  async #tickets(count: Count): Promise<Counts> {
    const { tickets } = this.timers;
    const hold = { resource: "seat", actor: "ann", ttl: LATER_MS };
    await tickets.open({ ...hold, key: "warm" });
    const counts: Counts = {};
    counts.open = await count(() => tickets.open({ ...hold, key: "1" }));
    counts.sooner = await count(() => tickets.open({ ...hold, key: "2", ttl: HOUR_MS / 2 }));
    counts.existing = await count(() => tickets.open({ ...hold, key: "1" }));
    counts.refused = await count(() => tickets.open({ ...hold, key: "3", resourceMax: 3 }));
    counts.find = await count(() => tickets.find("1"));
    const first = (await tickets.find("1"))?.id ?? "";
    counts.get = await count(() => tickets.get(first));
    counts.openCount = await count(() => tickets.openCount({ actor: "ann" }));
    counts.extend = await count(() => tickets.extend(first, 2 * LATER_MS));
    counts.consume = await count(() => tickets.consume(first));
    await tickets.open({ ...hold, key: "3" });
    const third = (await tickets.find("3"))?.id ?? "";
    counts.release = await count(() => tickets.release(third));
    counts.gone = await count(() => tickets.consume(first));
    await tickets.open({ ...hold, key: "4" });
    const second = (await tickets.find("4"))?.id ?? "";
    counts.cancel = await count(() => tickets.cancel(second));
    return counts;
  }

  async #outboxes(count: Count): Promise<Counts> {
    const { outboxes } = this.timers;
    const one = [{ id: "1", payload: "hello" }];
    const counts: Counts = {};
    await outboxes.append("mail", one);
    counts.behind = await count(() => outboxes.append("mail", one));
    counts.backlog = await count(() => outboxes.backlog("mail"));
    counts.waiting = await count(() => outboxes.waiting("mail"));
    counts.wake = await count(() => outboxes.wake("mail"));
    counts.setAside = await count(() => outboxes.setAside("mail", 2, "why"));
    counts.dead = await count(() => outboxes.dead("mail"));
    counts.requeue = await count(() => outboxes.requeue("mail", 2));
    return counts;
  }

  async #gated(count: Count): Promise<Counts> {
    const { gated } = this.timers;
    const waitsFor = [{ place: "images", key: "a" }];
    const counts: Counts = {};
    await gated.add("post", waitsFor);
    counts.anew = await count(() => gated.add("post", waitsFor));
    counts.get = await count(() => gated.get("post"));
    counts.lookNow = await count(() => gated.lookNow("post"));
    counts.remove = await count(() => gated.remove("post"));
    return counts;
  }
}

/** The same, whose leases and tickets ask before they end. */
export class AskingAlarms extends KindAlarms {
  protected override builtIns(): BuiltIns {
    return { ...super.builtIns(), leases: { drain: () => "drained" }, tickets: { abort: () => undefined } };
  }
}

export default router;

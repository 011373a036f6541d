// Objects whose class has no `alarm()`, or one that forgets the timers.
import { TimerObject, Timers, type Handlers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import { router } from "./router.js";

type Kinds = { tick: undefined };

const handlers: Handlers<Kinds> = { tick: () => undefined };

/** Its timers are made by the first request of it, as in one that says for itself what went wrong. */
export class WithoutAlarm extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op }) => {
      if (op === "tables") {
        return this.ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'dueline%'").toArray();
      }
      const timers = new Timers<Kinds>(this.ctx, { handlers });
      return timers.schedule("tick", { after: 1 });
    });
  }
}

/** As people write it. */
export class Composed extends DurableObject {
  readonly timers = new Timers<Kinds>(this.ctx, { handlers });
  override async fetch(request: Request): Promise<Response> {
    return answer(request, async () => this.timers.schedule("tick", { after: 1 }));
  }
}

export class Forgets extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return handlers;
  }
  override async alarm(): Promise<void> {
    console.log("the class has its alarm");
  }
  override async fetch(request: Request): Promise<Response> {
    return answer(request, async () => this.schedule("tick", { after: 1 }));
  }
}

export default {
  /** What breaks an object comes to whoever asked it. */
  async fetch(request: Request, env: Record<string, DurableObjectNamespace>): Promise<Response> {
    try {
      return await router.fetch(request, env);
    } catch (thrown) {
      return Response.json({ error: { message: (thrown as Error).message, code: null } });
    }
  },
};

// An object whose timers are told to another one over RPC, and whose errors come to a caller over RPC.
import { codeOf, detached, DuelineError, TimerObject, type Handlers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";

type Kinds = { tell: { text: string }; note: undefined };

interface Env {
  readonly Receiver: DurableObjectNamespace<Receiver>;
  readonly Sender: DurableObjectNamespace<Sender>;
}

/** What is told over RPC of a timer. */
interface Told {
  readonly kind: string;
  readonly name?: string;
  readonly occurrenceId: string;
  readonly attempt: number;
}

export class Receiver extends DurableObject {
  #notes = 0;
  take(told: Told): string {
    return JSON.stringify(told);
  }
  async note(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 20));
    this.#notes += 1;
  }
  notes(): number {
    return this.#notes;
  }
}

export class Sender extends TimerObject<Kinds, Env> {
  protected override handlers(): Handlers<Kinds> {
    return {
      // What is returned is a promise of the platform's RPC, which is a function.
      note: () => this.env.Receiver.getByName("receiver").note(),
      tell: detached({
        call: (timer) => this.env.Receiver.getByName("receiver").take({ ...timer }),
        settle: (timer, taken) => () => {
          this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS told (taken TEXT, id TEXT)");
          this.ctx.storage.sql.exec("INSERT INTO told VALUES (?, ?)", taken, timer.occurrenceId);
        },
      }),
    };
  }

  told(): { taken: string; id: string }[] {
    try {
      return this.ctx.storage.sql.exec<{ taken: string; id: string }>("SELECT * FROM told").toArray();
    } catch {
      return [];
    }
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const sender = env.Sender.getByName("sender");
    const { op } = await request.json<{ readonly op: string }>().catch(() => ({ op: "" }));
    switch (op) {
      case "schedule":
        return Response.json({ value: await sender.schedule("tell", { name: "ada: 1", after: 1, payload: { text: "hi" } }) });
      case "note":
        await sender.schedule("note", { name: "once", after: 1 });
        return Response.json({ value: null });
      case "noted": {
        const left = await sender.get("note", "once");
        return Response.json({ value: [left?.attempt ?? -1, await env.Receiver.getByName("receiver").notes()] });
      }
      case "told":
        return Response.json({ value: await sender.told() });
      case "refused":
        try {
          return Response.json({ value: await sender.reschedule("tell", "nobody", { after: 1 }) });
        } catch (thrown) {
          const { name } = thrown as Error;
          return Response.json({ value: { name, code: codeOf(thrown), isOurs: thrown instanceof DuelineError } });
        }
      default:
        return new Response();
    }
  },
};

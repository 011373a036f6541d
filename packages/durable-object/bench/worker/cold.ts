// How long an object takes from its construction to its first answer.
import { Timers } from "@dueline/durable-object";
import { DurableObject } from "cloudflare:workers";

type Kinds = { note: undefined };

export class Cold extends DurableObject {
  readonly #begun = performance.now();
  readonly #timers = new Timers<Kinds>(this.ctx, { handlers: { note: () => undefined } });
  #isFirst = true;

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.#timers.alarm(info);
  }

  override async fetch(request: Request): Promise<Response> {
    const { op } = await request.json<{ op: string }>();
    if (op === "evict") {
      this.ctx.abort("to be built again");
    }
    if (op === "schedule") {
      await this.#timers.schedule("note", { name: "one", after: 86_400_000 });
    } else {
      await this.#timers.get("note", "one");
    }
    const value = this.#isFirst ? performance.now() - this.#begun : null;
    this.#isFirst = false;
    return Response.json({ value });
  }
}

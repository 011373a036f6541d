// How long an object takes from its construction to its first answer, with either entry of the package.
import { Timers } from "@dueline/durable-object";
import { Timers as TimersWithKinds } from "@dueline/durable-object/kinds";
import { DurableObject } from "cloudflare:workers";

type Kinds = { note: undefined };

const HANDLERS = { handlers: { note: () => undefined } };

abstract class Measured extends DurableObject {
  readonly #begun = performance.now();
  #isFirst = true;

  /** Built behind the stopwatch. */
  protected abstract readonly timers: Pick<Timers<Kinds>, "alarm" | "get" | "schedule">;

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }

  override async fetch(request: Request): Promise<Response> {
    const { op } = await request.json<{ op: string }>();
    if (op === "evict") {
      this.ctx.abort("to be built again");
    }
    if (op === "schedule") {
      await this.timers.schedule("note", { name: "one", after: 86_400_000 });
    } else {
      await this.timers.get("note", "one");
    }
    const value = this.#isFirst ? performance.now() - this.#begun : null;
    this.#isFirst = false;
    return Response.json({ value });
  }
}

export class Cold extends Measured {
  protected override readonly timers = new Timers<Kinds>(this.ctx, HANDLERS);
}

export class ColdWithKinds extends Measured {
  protected override readonly timers = new TimersWithKinds<Kinds>(this.ctx, { ...HANDLERS, builtIns: { leases: {} } });
}

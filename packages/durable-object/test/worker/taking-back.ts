// An object that calls verbs within `ctx.storage.transaction`, and gives some of these up.
import { TimerObject, type BuiltIns, type Handlers } from "@dueline/durable-object/kinds";
import { answer } from "./answer.js";
import { router } from "./router.js";

type Kinds = { note: undefined };

export class Orders extends TimerObject<Kinds> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS fired (name TEXT)");
  }

  protected override handlers(): Handlers<Kinds> {
    return { note: (timer) => () => this.#fired(timer.name ?? "anonymous") };
  }

  protected override builtIns(): BuiltIns {
    return { outboxes: { mail: (message) => this.#fired(`mail ${message.id}`) } };
  }

  #fired(name: string): void {
    this.ctx.storage.sql.exec("INSERT INTO fired VALUES (?)", name);
  }

  /** In a transaction of the application's own; whether it stands. */
  async #within(inside: () => Promise<unknown>, isGivenUp: boolean, how: string): Promise<boolean> {
    try {
      await this.ctx.storage.transaction(async (transaction) => {
        await inside();
        if (isGivenUp && how === "rollback") {
          transaction.rollback();
        } else if (isGivenUp) {
          throw new Error("declined");
        }
      });
    } catch (thrown) {
      if ((thrown as Error).message !== "declined") {
        throw thrown;
      }
    }
    return !isGivenUp;
  }

  #verbs: Record<string, (name: string) => Promise<unknown>> = {
    schedule: (name) => this.schedule("note", { name, after: 300 }),
    anonymous: () => this.schedule("note", { after: 300 }),
    scheduleMany: (name) => this.scheduleMany([{ kind: "note", name, after: 300 }]),
    cancel: (name) => this.cancel("note", name),
    append: (name) => this.timers.outboxes.append("mail", [{ id: name, payload: null }]),
  };

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const [verb = "", name = "", isGivenUp = false, how = "throw"] = args as [string, string, boolean, string];
      const call = this.#verbs[verb];
      switch (op) {
        case "within":
          return this.#within(() => call?.(name) ?? Promise.reject(new Error(verb)), isGivenUp, how);
        case "call":
          return call?.(name);
        default:
          return this.ctx.storage.sql.exec("SELECT name FROM fired ORDER BY rowid").toArray().map(({ name }) => name);
      }
    });
  }
}

export default router;

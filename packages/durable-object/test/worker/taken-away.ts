// Objects that take away what they have: all of it, by `deleteAll()`, or what a transaction wrote.
import { TimerObject, type Handlers } from "@dueline/durable-object";
import { answer } from "./answer.js";
import { router } from "./router.js";

type Kinds = { note: undefined; other: undefined; wipe: undefined; wipeInEffects: undefined };

export class Wiped extends TimerObject<Kinds> {
  readonly #fired: string[] = [];

  protected override handlers(): Handlers<Kinds> {
    const note = (timer: { readonly name?: string }) => () => void this.#fired.push(timer.name ?? "anonymous");
    return {
      note,
      other: note,
      wipe: async () => {
        await this.ctx.storage.deleteAll();
        this.#fired.push("wiped");
      },
      wipeInEffects: () => () => {
        this.#fired.push("wiped");
        void this.ctx.storage.deleteAll().catch(() => undefined);
      },
    };
  }

  /** Timers in a transaction that is given up, among others that stand. */
  async #among(): Promise<void> {
    const of = (prefix: string): Promise<unknown>[] =>
      Array.from({ length: 20 }, (_, index) => this.schedule("note", { name: `${prefix} ${index}`, after: 50 }));
    const standing = of("before");
    const transaction = this.ctx.storage.transaction(async () => {
      await Promise.all(of("in"));
      throw new Error("declined");
    });
    standing.push(...of("beside"));
    await Promise.all([...standing, transaction.catch(() => undefined)]);
  }

  /** The alarm behind a verb that follows one which was taken back, and the due of what it scheduled. */
  async #behind(): Promise<[number | null, number]> {
    const declined = this.ctx.storage.transaction(async () => {
      await this.schedule("note", { name: "declined", after: 30_000 });
      throw new Error("declined");
    });
    await declined.catch(() => undefined);
    const { dueAt } = await this.schedule("other", { name: "ordered", after: 60_000 });
    return [await this.ctx.storage.getAlarm(), dueAt];
  }

  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const { storage } = this.ctx;
      switch (op) {
        case "schedule":
          return this.schedule(args[0] as keyof Kinds, { name: args[1] as string, after: args[2] as number });
        case "names":
          return (await this.list("note")).items.map(({ name }) => name);
        case "wipe":
          return storage.deleteAll();
        case "among":
          return this.#among();
        case "behind":
          return this.#behind();
        case "tables":
          return storage.sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'dueline%'").toArray().length;
        default:
          return this.#fired;
      }
    });
  }
}

/** An object whose own alarm was set before it had timers. */
export class Grown extends TimerObject<{ note: undefined }> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS came (name TEXT)");
  }
  protected override handlers(): Handlers<{ note: undefined }> {
    return { note: () => () => this.#came("timer") };
  }
  protected override ownAlarm(): void {
    this.#came("own alarm");
  }
  #came(name: string): void {
    this.ctx.storage.sql.exec("INSERT INTO came VALUES (?)", name);
  }
  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => {
      const { storage } = this.ctx;
      switch (op) {
        case "forgetTimers":
          // As a version without timers leaves it.
          await storage.deleteAll();
          storage.sql.exec("CREATE TABLE came (name TEXT)");
          return storage.setAlarm(args[0] as number);
        case "schedule":
          return this.schedule("note", { after: args[0] as number });
        default:
          return storage.sql.exec("SELECT name FROM came").toArray().map(({ name }) => name);
      }
    });
  }
}

export default router;

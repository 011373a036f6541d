// Seats that are reserved, committed or abandoned while their object is killed: each beginning and each end is a
// row of the object's own, and a second one of the same reservation would be seen.
import { TimerObject, type BuiltIns, type Effects, type Reservation } from "@dueline/durable-object/kinds";
import { answer } from "./answer.js";
import { router } from "./router.js";
import { timerCount } from "./rows.js";

export class Hall extends TimerObject<Record<string, never>> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS held (id TEXT NOT NULL); " +
        "CREATE TABLE IF NOT EXISTS ends (id TEXT NOT NULL, way TEXT NOT NULL, at INTEGER NOT NULL)",
    );
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      reservations: {
        onAbandon: async ({ id }) => {
          await new Promise((resolve) => setTimeout(resolve, 2));
          return this.#end(id, "abandoned");
        },
      },
    };
  }

  #end(id: string, way: Reservation["state"]): Effects {
    return () => void this.#sql.exec("INSERT INTO ends VALUES (?, ?, ?)", id, way, Date.now());
  }

  override async fetch(request: Request): Promise<Response> {
    const { reservations } = this.timers;
    return answer(request, async ({ op, args }) => {
      const [id, serial] = args as [string, string];
      switch (op) {
        case "reserve": {
          const [, commitWithin] = args as [string, number];
          const effects = (): void => void this.#sql.exec("INSERT INTO held VALUES (?)", id);
          return reservations.reserve(id, { commitWithin, skew: 50, detail: { seat: id }, effects });
        }
        case "commit":
          return reservations.commit(id, { serial, effects: this.#end(id, "committed") });
        case "all": {
          const ids = args[0] as readonly string[];
          return Promise.all(ids.map((id) => reservations.get(id)));
        }
        case "held":
          return this.#sql.exec("SELECT id FROM held").toArray();
        case "ends":
          return this.#sql.exec("SELECT id, way, at FROM ends").toArray();
        case "left":
          return { timers: timerCount(this.#sql), alarm: await this.ctx.storage.getAlarm() };
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

export default router;

// Charges of an object that is killed: each is a row of the object's own, and the counters must say the same.
import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";
import { answer } from "./answer.js";
import { router } from "./router.js";

export class Meter extends TimerObject<Record<string, never>> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS requests (id TEXT NOT NULL, bytes INTEGER NOT NULL)");
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return { quotas: { api: { window: 2_000 } } };
  }

  override async fetch(request: Request): Promise<Response> {
    const { quotas } = this.timers;
    return answer(request, async ({ op, args }) => {
      switch (op) {
        case "charge": {
          const [id, bytes, limit] = args as [string, number, number];
          const effects = (): void => void this.#sql.exec("INSERT INTO requests VALUES (?, ?)", id, bytes);
          return quotas.charge("api", [1, bytes], { limits: [limit, Infinity], effects });
        }
        case "total":
          return quotas.total("api", args[0] as number);
        case "requests":
          return this.#sql.exec("SELECT id, bytes FROM requests").toArray();
        default:
          throw new Error(`no op ${op}`);
      }
    });
  }
}

export default router;

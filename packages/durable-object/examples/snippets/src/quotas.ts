// Documents of a tenant, who may make 100 requests an hour and store a million characters a day.
import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";

const HOUR_MS = 3_600_000;

export class Tenant extends TimerObject<Record<string, never>> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, text TEXT NOT NULL)");
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return { quotas: { requests: { window: HOUR_MS }, storage: { window: 24 * HOUR_MS } } };
  }

  override async fetch(request: Request): Promise<Response> {
    const { quotas } = this.timers;
    const admitted = await quotas.charge("requests", [1], { limits: [100] });
    if (admitted.outcome === "refused") {
      const seconds = Math.ceil((admitted.endsAt - Date.now()) / 1_000);
      return new Response("too many requests", { status: 429, headers: { "retry-after": String(seconds) } });
    }
    const name = new URL(request.url).pathname;
    const text = await request.text();
    // Two counters, documents and characters. The charge and the document are one commit: neither without the other.
    const charge = await quotas.charge("storage", [1, text.length], {
      limits: [Infinity, 1_000_000],
      effects: () => void this.#sql.exec("INSERT OR REPLACE INTO documents VALUES (?, ?)", name, text),
    });
    return new Response(null, { status: charge.outcome === "charged" ? 201 : 507 });
  }

  /** What is used of today, and what was used of yesterday's, as long as it is there. */
  async report(): Promise<{ today: readonly number[]; yesterday: readonly number[] | undefined }> {
    const { used, startsAt } = await this.timers.quotas.usage("storage");
    return { today: used, yesterday: await this.timers.quotas.total("storage", startsAt - 1) };
  }
}

import { outbox, SinkError, TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";

interface Paid {
  readonly order: string;
  readonly cents: number;
}

interface Env {
  readonly ACCOUNTING: Fetcher;
}

/** A shop that tells its accounting of every paid order. */
export class Shop extends TimerObject<Record<string, never>, Env> {
  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      outboxes: {
        paid: outbox<Paid>({
          deliver: async ({ id, payload, signal }) => {
            const response = await this.env.ACCOUNTING.fetch("https://accounting/paid", {
              method: "POST",
              headers: { "idempotency-key": id },
              body: JSON.stringify(payload),
              signal,
            });
            if (response.status === 429 || response.status === 503) {
              // Nothing passes this one, and no attempt of it is counted.
              const after = Number(response.headers.get("retry-after") ?? 0) * 1_000;
              throw new SinkError("unavailable", `accounting answered ${response.status}`, { after });
            }
            if (response.status === 410) {
              throw new SinkError("refused", "accounting will never take it");
            }
            if (!response.ok) {
              // Any other error: it is tried again, and the orders behind it go on meanwhile.
              throw new Error(`accounting answered ${response.status}`);
            }
          },
          deadline: 10_000,
        }),
      },
    };
  }

  /** The order is paid and its message is on its way, or neither. */
  async pay(order: string, cents: number): Promise<void> {
    const payload: Paid = { order, cents };
    await this.timers.outboxes.append("paid", [{ id: order, payload }], {
      effects: () => {
        this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS paid (id TEXT PRIMARY KEY, cents INTEGER NOT NULL)");
        this.ctx.storage.sql.exec("INSERT INTO paid VALUES (?, ?)", order, cents);
      },
    });
  }

  /** Orders that accounting did not take, to be told of once more. */
  async tellAgain(): Promise<number> {
    const { items } = await this.timers.outboxes.dead("paid");
    for (const { sequence } of items) {
      await this.timers.outboxes.requeue("paid", sequence);
    }
    return items.length;
  }
}

import { TimerObject, type BuiltIns, type TicketOpening } from "@dueline/durable-object/kinds";

interface Env {
  readonly PAYMENTS: Fetcher;
}

/** A show whose seats are held for ten minutes, at most four for a customer, and then sold or free again. */
export class BoxOffice extends TimerObject<Record<string, never>, Env> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, state TEXT NOT NULL)");
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      tickets: {
        // Whatever end a ticket has, the table says so in the same commit.
        onClose: ({ resource }, end) => () => this.#put(resource, end === "consumed" ? "sold" : "free"),
        abort: async ({ session }) => {
          await this.env.PAYMENTS.fetch(`https://payments/checkouts/${session}`, { method: "DELETE" });
        },
      },
    };
  }

  /** Holds a seat. Asked again by the same request, it gives the same ticket. */
  async hold(seat: string, customer: string, request: string, checkout: string): Promise<TicketOpening> {
    return this.timers.tickets.open({
      resource: seat,
      resourceMax: 1,
      actor: customer,
      actorMax: 4,
      key: request,
      session: checkout,
      ttl: 10 * 60_000,
      effects: () => {
        if (this.#state(seat) === "sold") {
          // Undoes the ticket; `hold` throws this.
          throw new Error(`${seat} is sold`);
        }
        this.#put(seat, "held");
      },
    });
  }

  /** Sells the seat of a ticket, unless its time is over. */
  async buy(id: string): Promise<boolean> {
    const { outcome } = await this.timers.tickets.consume(id);
    return outcome === "done";
  }

  /** Makes the seat of a ticket free at once, and aborts its checkout. */
  async giveUp(id: string): Promise<void> {
    await this.timers.tickets.cancel(id);
  }

  #state(seat: string): unknown {
    const [row] = this.#sql.exec("SELECT state FROM seats WHERE seat = ?", seat).toArray();
    return row?.state;
  }

  #put(seat: string, state: "free" | "held" | "sold"): void {
    this.#sql.exec("INSERT OR REPLACE INTO seats VALUES (?, ?)", seat, state);
  }
}

// Seats that are held while somebody pays: paid in time, or free again.
import { TimerObject, type BuiltIns } from "@dueline/durable-object/kinds";

interface Hold {
  readonly holder: string;
}

export class Hall extends TimerObject<Record<string, never>> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, holder TEXT NOT NULL, state TEXT NOT NULL)");
  }

  protected override handlers(): Record<string, never> {
    return {};
  }

  protected override builtIns(): BuiltIns {
    return {
      reservations: {
        // Nobody has paid. What is returned commits with the end of the hold: exactly once.
        onAbandon: ({ id }) => () => void this.#sql.exec("DELETE FROM seats WHERE seat = ? AND state = 'held'", id),
      },
    };
  }

  /** Holds a seat for ten minutes. The ticket to pay with; `null` if somebody has it. */
  async hold(seat: string, holder: string): Promise<string | null> {
    if (this.#sql.exec("SELECT 1 FROM seats WHERE seat = ?", seat).toArray().length > 0) {
      return null;
    }
    const detail: Hold = { holder };
    const { outcome, reservation } = await this.timers.reservations.reserve(seat, {
      commitWithin: 10 * 60_000,
      // The hold goes with its end, so that the seat can be held anew at once.
      keepFor: 0,
      detail,
      effects: () => void this.#sql.exec("INSERT INTO seats VALUES (?, ?, 'held')", seat, holder),
    });
    return outcome === "made" ? reservation.serial : null;
  }

  /** The card is being charged: five minutes more, if that is longer than what is left. Whether it is in time. */
  async payment(seat: string, ticket: string): Promise<boolean> {
    const { reservations } = this.timers;
    const hold = await reservations.get(seat);
    if (hold?.serial !== ticket) {
      return false;
    }
    const { outcome } = await reservations.extend(seat, { serial: ticket, detail: hold.detail, commitWithin: 5 * 60_000 });
    return outcome === "settled";
  }

  /** Sells a seat that is held. `false`: too late, and whoever has paid is to be paid back. */
  async paid(seat: string, ticket: string): Promise<boolean> {
    const { outcome } = await this.timers.reservations.commit(seat, {
      serial: ticket,
      effects: () => void this.#sql.exec("UPDATE seats SET state = 'sold' WHERE seat = ?", seat),
    });
    return outcome === "settled";
  }

  /** Gives a seat back. */
  async release(seat: string, ticket: string): Promise<void> {
    await this.timers.reservations.abort(seat, {
      serial: ticket,
      reason: "given back",
      effects: () => void this.#sql.exec("DELETE FROM seats WHERE seat = ?", seat),
    });
  }
}

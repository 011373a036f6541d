// Seats of an event. A seat is held for ten minutes; confirmed in time it is sold, else it is free again.
import { TimerObject, type Handlers } from "@dueline/durable-object";

const HOLD_MS = 10 * 60_000;

type Kinds = { expire: { seat: string } };

export interface Seat extends Record<string, SqlStorageValue> {
  readonly seat: string;
  readonly holder: string;
  readonly state: "held" | "sold";
}

interface Env {
  readonly EVENTS: DurableObjectNamespace<SeatHold>;
}

export class SeatHold extends TimerObject<Kinds, Env> {
  readonly #sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS seats (seat TEXT PRIMARY KEY, holder TEXT NOT NULL, state TEXT NOT NULL)",
    );
  }

  protected override handlers(): Handlers<Kinds> {
    return {
      // What is returned commits with the timer's removal: the seat is freed exactly once.
      expire: (timer) => () => {
        this.#sql.exec("DELETE FROM seats WHERE seat = ? AND state = 'held'", timer.payload.seat);
      },
    };
  }

  /** Until when the seat is held; `null` if somebody has it. */
  async hold(seat: string, holder: string): Promise<number | null> {
    if (this.#sql.exec("SELECT 1 FROM seats WHERE seat = ?", seat).toArray().length > 0) {
      return null;
    }
    // Before the row: a timer without one frees nothing, a row without a timer would stay for ever.
    const { outcome, dueAt } = await this.schedule("expire", {
      name: seat,
      policy: "ifAbsent",
      after: HOLD_MS,
      payload: { seat },
    });
    if (outcome === "kept") {
      return null;
    }
    this.#sql.exec("INSERT INTO seats VALUES (?, ?, 'held')", seat, holder);
    return dueAt;
  }

  /** Sells a seat to its holder. Whether it was held by them. */
  async confirm(seat: string, holder: string): Promise<boolean> {
    const sold = this.#sql.exec(
      "UPDATE seats SET state = 'sold' WHERE seat = ? AND holder = ? AND state = 'held'",
      seat,
      holder,
    );
    if (sold.rowsWritten === 0) {
      return false;
    }
    // A timer that fires before this finds the seat sold.
    await this.cancel("expire", seat);
    return true;
  }

  async seats(): Promise<Seat[]> {
    return this.#sql.exec<Seat>("SELECT * FROM seats ORDER BY seat").toArray();
  }
}

/** `GET /EVENT`, `POST /EVENT/SEAT/hold?holder=NAME`, `POST /EVENT/SEAT/confirm?holder=NAME`. */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const [, event = "", seat = "", verb = ""] = url.pathname.split("/");
    const holder = url.searchParams.get("holder") ?? "";
    const object = env.EVENTS.get(env.EVENTS.idFromName(event));
    if (verb === "hold") {
      const until = await object.hold(seat, holder);
      return Response.json({ until }, { status: until === null ? 409 : 200 });
    }
    if (verb === "confirm") {
      const isSold = await object.confirm(seat, holder);
      return Response.json({ isSold }, { status: isSold ? 200 : 409 });
    }
    return Response.json(await object.seats());
  },
};

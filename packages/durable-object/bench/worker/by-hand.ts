// The alarm loop that people write by hand, with the same promises as the package: a timer lies in a row, the
// alarm is set before a row that is due earlier, effects and removal commit together, a replaced timer is not
// removed by the run of the one before, failures are tried again later and later and are given up in the end.
import { Side, payload, type Payload, type Wanted } from "./side.js";

type Handler = (timer: { dueAt: number; payload: Payload }) => (() => void) | Promise<() => void>;

interface Row extends Record<string, SqlStorageValue> {
  readonly id: string;
  readonly generation: number;
  readonly kind: string;
  readonly due_at: number;
  readonly payload: string;
  readonly attempt: number;
}

const ATTEMPTS_MAX = 20;

export class ByHand extends Side {
  /** Timers of one alarm: as many as the package fires in a tick. */
  protected readonly batch: number = 128;
  #alarm: number | null | undefined;
  #isHeld = false;
  readonly #handlers: Record<string, Handler> = {
    note: (timer) => () => this.effect(timer.payload.number, timer.dueAt),
  };

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.sql.exec(
      "CREATE TABLE IF NOT EXISTS timers (id TEXT PRIMARY KEY, generation INTEGER NOT NULL, kind TEXT NOT NULL, " +
        "due_at INTEGER NOT NULL, next_at INTEGER NOT NULL, payload TEXT NOT NULL, attempt INTEGER NOT NULL, last_error TEXT) WITHOUT ROWID; " +
        "CREATE INDEX IF NOT EXISTS timers_next ON timers (next_at); " +
        "CREATE TABLE IF NOT EXISTS dead (id TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, last_error TEXT NOT NULL, at INTEGER NOT NULL)",
    );
    ctx.blockConcurrencyWhile(async () => {
      this.#alarm = await ctx.storage.getAlarm();
      this.#arm();
    });
  }

  override async alarm(): Promise<void> {
    this.#alarm = null;
    const due = this.#isHeld
      ? []
      : this.sql
          .exec<Row>(
            "SELECT id, generation, kind, due_at, payload, attempt FROM timers WHERE next_at <= ? ORDER BY next_at LIMIT ?",
            Date.now(),
            this.batch,
          )
          .toArray();
    for (const row of due) {
      await this.#fire(row);
    }
    this.#arm();
  }

  async #fire(row: Row): Promise<void> {
    try {
      const handler = this.#handlers[row.kind];
      if (handler === undefined) {
        throw new Error(`no handler for ${row.kind}`);
      }
      const effects = await handler({ dueAt: row.due_at, payload: JSON.parse(row.payload) });
      this.ctx.storage.transactionSync(() => {
        const removed = this.sql.exec("DELETE FROM timers WHERE id = ? AND generation = ?", row.id, row.generation);
        if (removed.rowsWritten > 0) {
          effects();
        }
      });
    } catch (thrown) {
      this.#failed(row, String(thrown));
    }
  }

  #failed(row: Row, error: string): void {
    const attempt = row.attempt + 1;
    this.ctx.storage.transactionSync(() => {
      if (attempt < ATTEMPTS_MAX) {
        const delay = Math.min(5_000 * 2 ** row.attempt, 600_000) * (1 + Math.random() / 5);
        this.sql.exec(
          "UPDATE timers SET attempt = ?, next_at = ?, last_error = ? WHERE id = ? AND generation = ?",
          attempt,
          Math.ceil(Date.now() + delay),
          error,
          row.id,
          row.generation,
        );
        return;
      }
      const removed = this.sql.exec("DELETE FROM timers WHERE id = ? AND generation = ?", row.id, row.generation);
      if (removed.rowsWritten > 0) {
        this.sql.exec("INSERT INTO dead VALUES (?, ?, ?, ?, ?)", row.id, row.kind, row.payload, error, Date.now());
      }
    });
  }

  #arm(): void {
    const { next } = this.sql.exec<{ next: number | null }>("SELECT MIN(next_at) AS next FROM timers").one();
    if (next === null || this.#isHeld) {
      if (this.#alarm !== null) {
        void this.ctx.storage.deleteAlarm();
      }
      this.#alarm = null;
    } else {
      this.#setAlarm(Math.max(next, Date.now() + 1));
    }
  }

  #setAlarm(at: number): void {
    if (this.#alarm !== at) {
      void this.ctx.storage.setAlarm(at);
      this.#alarm = at;
    }
  }

  async #schedule(id: string, number: number, dueAt: number): Promise<void> {
    this.#lower(dueAt);
    this.ctx.storage.transactionSync(() => this.#put(id, number, dueAt));
  }

  /** Sets the alarm for a timer that is due earlier than what is pending. */
  #lower(dueAt: number): void {
    if (!this.#isHeld && (this.#alarm === null || this.#alarm === undefined || dueAt < this.#alarm)) {
      this.#setAlarm(Math.max(dueAt, Date.now() + 1));
    }
  }

  #put(id: string, number: number, dueAt: number): void {
    const old = this.sql.exec<{ generation: number }>("SELECT generation FROM timers WHERE id = ?", id).toArray()[0];
    this.sql.exec(
      "INSERT OR REPLACE INTO timers VALUES (?, ?, 'note', ?, ?, ?, 0, NULL)",
      id,
      (old?.generation ?? 0) + 1,
      dueAt,
      dueAt,
      JSON.stringify(payload(number)),
    );
  }

  protected override async all(timers: readonly Wanted[]): Promise<void> {
    this.#lower(Math.min(...timers.map(({ dueAt }) => dueAt)));
    this.ctx.storage.transactionSync(() => {
      for (const { number, dueAt } of timers) {
        this.#put(crypto.randomUUID(), number, dueAt);
      }
    });
  }

  protected override anonymous(number: number, dueAt: number): Promise<void> {
    return this.#schedule(crypto.randomUUID(), number, dueAt);
  }

  protected override named(name: string, number: number, dueAt: number): Promise<void> {
    return this.#schedule(name, number, dueAt);
  }

  protected override async hold(): Promise<void> {
    this.#isHeld = true;
    this.#arm();
  }

  protected override async release(): Promise<void> {
    this.#isHeld = false;
    this.#arm();
  }

  protected override left(): number {
    return this.sql.exec<{ n: number }>("SELECT COUNT(*) AS n FROM timers").one().n;
  }
}

/** With as many in one alarm as the package fires in all its ticks; nobody is let in between. */
export class ByHandAtLength extends ByHand {
  protected override readonly batch = 16 * 128;
}

// What the timers of an object read and write: their `sql` stands between them and the platform's.

/** Rows as the platform bills them, and how often the alarm was set or deleted. */
export interface Counted {
  readonly read: number;
  readonly written: number;
  readonly alarms: number;
}

/** `target`, with some of its properties replaced. */
function over<T extends object>(target: T, replaced: Readonly<Record<string, unknown>>): T {
  return new Proxy(target, {
    get: (target, name) => {
      if (typeof name === "string" && name in replaced) {
        return replaced[name];
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Counts what is done through its `ctx`. */
export class Counting {
  readonly ctx: DurableObjectState;
  #cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  #alarms = 0;

  constructor(ctx: DurableObjectState) {
    const { storage } = ctx;
    const exec = (statement: string, ...bindings: unknown[]) => {
      const cursor = storage.sql.exec(statement, ...bindings);
      this.#cursors.push(cursor);
      return cursor;
    };
    const setAlarm = (at: number | Date): Promise<void> => {
      this.#alarms += 1;
      return storage.setAlarm(at);
    };
    const deleteAlarm = (): Promise<void> => {
      this.#alarms += 1;
      return storage.deleteAlarm();
    };
    const sql = over(storage.sql, { exec });
    this.ctx = over(ctx, { storage: over(storage, { sql, setAlarm, deleteAlarm }) });
  }

  /** What work costs. Cursors count while they are read, so they are asked behind it. */
  async during(work: () => Promise<unknown>): Promise<Counted> {
    this.#cursors = [];
    this.#alarms = 0;
    await work();
    const sum = (rows: "rowsRead" | "rowsWritten"): number => this.#cursors.reduce((sum, cursor) => sum + cursor[rows], 0);
    return { read: sum("rowsRead"), written: sum("rowsWritten"), alarms: this.#alarms };
  }
}

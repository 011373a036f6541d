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

/** A statement's cursor, which counts while it is read. */
type Cursor = SqlStorageCursor<Record<string, SqlStorageValue>>;

/** The object's state, with whoever is told of each statement, and of each alarm that is set or deleted. */
export function countingState(
  ctx: DurableObjectState,
  executed: (cursor: Cursor) => void,
  alarm: () => void = () => undefined,
): DurableObjectState {
  const { storage } = ctx;
  const exec = (statement: string, ...bindings: unknown[]): Cursor => {
    const cursor = storage.sql.exec(statement, ...bindings);
    executed(cursor);
    return cursor;
  };
  const setAlarm = (at: number | Date): Promise<void> => {
    alarm();
    return storage.setAlarm(at);
  };
  const deleteAlarm = (): Promise<void> => {
    alarm();
    return storage.deleteAlarm();
  };
  const sql = over(storage.sql, { exec });
  return over(ctx, { storage: over(storage, { sql, setAlarm, deleteAlarm }) });
}

/** Counts what is done through its `ctx`. */
export class Counting {
  readonly ctx: DurableObjectState;
  #cursors: Cursor[] = [];
  #alarms = 0;

  constructor(ctx: DurableObjectState) {
    this.ctx = countingState(
      ctx,
      (cursor) => this.#cursors.push(cursor),
      () => (this.#alarms += 1),
    );
  }

  /** Statements since the last work began. */
  get statements(): number {
    return this.#cursors.length;
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

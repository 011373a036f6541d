import type { HostKind } from "./host.js";

/** Whether an object has had timers. */
export function hasTables({ sql }: DurableObjectStorage): boolean {
  const tables = sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'dueline_meta'");
  return tables.toArray().length > 0;
}

/**
 * The alarm that an object had before it adopted this package, as a timer.
 *
 * Whether the object is an old one is known from the tables: while they are missing, whatever alarm is
 * pending, or being served, was set by the object itself.
 */
export class OwnAlarm {
  static readonly KIND = "$alarm";
  static readonly NAME = "alarm";
  readonly #storage: DurableObjectStorage;
  readonly #alarm: () => void | Promise<void>;
  /** Whether the alarm that is being served may be one of the object's own. */
  #isServedOwn = false;

  constructor(storage: DurableObjectStorage, alarm: () => void | Promise<void>) {
    this.#storage = storage;
    this.#alarm = alarm;
  }

  /** The kind of its timer. */
  kind(): HostKind {
    const run = async (): Promise<void> => {
      await this.#alarm();
    };
    return { name: OwnAlarm.KIND, kind: { run } };
  }

  /** Before the tables are made: the alarm that was pending, `null` without one, `undefined` if there are tables. */
  async pending(): Promise<number | null | undefined> {
    if (hasTables(this.#storage)) {
      return undefined;
    }
    return this.#storage.getAlarm();
  }

  /** Makes a timer of the alarm that was pending. */
  async adopt(
    pending: number | null | undefined,
    schedule: (at: number) => Promise<void>,
  ): Promise<void> {
    this.#isServedOwn = pending === null;
    if (typeof pending === "number") {
      await schedule(pending);
    }
  }

  /** The first alarm behind the adoption, if none was pending: it woke the object and is its own. */
  async adoptServed(scheduleNow: () => Promise<void>): Promise<void> {
    if (this.#isServedOwn) {
      this.#isServedOwn = false;
      await scheduleNow();
    }
  }
}

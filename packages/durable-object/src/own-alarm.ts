import type { HostKind } from "./host.js";

/** By how much an alarm may come before its time by the object's own clock. */
const EARLY_MS_MAX = 10;

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
  /** When the object adopted this package with no alarm pending: the one that woke it may be its own. */
  #adoptedAt: number | undefined;

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
    this.#adoptedAt = pending === null ? Date.now() : undefined;
    if (typeof pending === "number") {
      await schedule(pending);
    }
  }

  /**
   * The first alarm behind the adoption, if none was pending: if it woke the object it is its own. One that the timers
   * have set since is theirs, and lies behind the adoption. A platform that does not say when it was set for leaves that open.
   */
  async adoptServed(scheduledAt: number | undefined, isOfTimers: () => boolean, scheduleNow: () => Promise<void>): Promise<void> {
    const adoptedAt = this.#adoptedAt;
    this.#adoptedAt = undefined;
    if (adoptedAt === undefined || isOfTimers() || (scheduledAt ?? 0) > adoptedAt + EARLY_MS_MAX) {
      return;
    }
    await scheduleNow();
  }
}

import type { TestAlarm } from "./alarm.js";
import type { TestClock } from "./clock.js";
import { TestKv, type ListKeys } from "./kv.js";
import type { TestSql } from "./sql.js";

/** `ctx.storage`: SQL, `transactionSync`, the alarm, `sync`, `deleteAll`, and keys with values. */
class TestStorage {
  readonly sql: TestSql;
  readonly #kv: TestKv;
  readonly #alarm: TestAlarm;
  readonly #hasHandler: () => boolean;

  constructor(sql: TestSql, alarm: TestAlarm, hasHandler: () => boolean) {
    this.#hasHandler = hasHandler;
    this.sql = sql;
    this.#kv = new TestKv(sql);
    this.#alarm = alarm;
  }

  transactionSync<T>(inside: () => T): T {
    return this.sql.transactionSync(inside);
  }

  async getAlarm(): Promise<number | null> {
    return this.#alarm.at;
  }

  async setAlarm(at: number | Date): Promise<void> {
    const ms = new Date(at).getTime();
    if (!Number.isFinite(ms) || ms <= 0) {
      throw new TypeError(`setAlarm() takes a time, not ${String(at)}`);
    }
    if (!this.#hasHandler()) {
      // In the platform's words.
      throw new TypeError("Your Durable Object class must have an alarm() handler in order to call setAlarm()");
    }
    this.#alarm.set(ms);
  }

  async deleteAlarm(): Promise<void> {
    this.#alarm.delete();
  }

  async sync(): Promise<void> {}

  async get(keys: string | string[]): Promise<unknown> {
    if (typeof keys === "string") {
      return this.#kv.get(keys);
    }
    return new Map(keys.map((key) => [key, this.#kv.get(key)] as const).filter(([, value]) => value !== undefined));
  }

  async put(keys: string | Record<string, unknown>, value?: unknown): Promise<void> {
    for (const [key, put] of typeof keys === "string" ? [[keys, value] as const] : Object.entries(keys)) {
      this.#kv.put(key, put);
    }
  }

  async delete(keys: string | string[]): Promise<boolean | number> {
    return typeof keys === "string" ? this.#kv.delete(keys) : keys.filter((key) => this.#kv.delete(key)).length;
  }

  async deleteAll(): Promise<void> {
    this.sql.deleteAll();
    this.#kv.forget();
    this.#alarm.delete();
  }

  async list(options?: ListKeys): Promise<Map<string, unknown>> {
    return this.#kv.list(options);
  }
}

/** The `ctx` of one instance of an object. */
export class TestState {
  readonly id: { readonly name: string; toString(): string; equals(other: unknown): boolean };
  readonly storage: TestStorage;
  readonly #clock: TestClock;
  #gate: Promise<unknown> = Promise.resolve();

  constructor(clock: TestClock, name: string, sql: TestSql, alarm: TestAlarm, hasHandler: () => boolean) {
    const text = Buffer.from(name, "utf8").toString("hex").padEnd(64, "0");
    this.id = { name, toString: () => text, equals: (other) => String(other) === text };
    this.storage = only(new TestStorage(sql, alarm, hasHandler), "ctx.storage");
    this.#clock = clock;
  }

  /** What the object's class takes. */
  get asGiven(): DurableObjectState {
    return only(this, "ctx") as unknown as DurableObjectState;
  }

  /** Done when nothing blocks the object any more; rejected if what did has failed. */
  get gate(): Promise<unknown> {
    return this.#gate;
  }

  blockConcurrencyWhile<T>(blocking: () => Promise<T>): Promise<T> {
    const before = this.#gate;
    const done = this.#clock.track(blocking());
    this.#gate = before.then(() => done);
    // Whoever waits is told.
    this.#gate.catch(() => undefined);
    return done;
  }

  waitUntil(promise: Promise<unknown>): void {
    // The platform logs what is rejected here and goes on.
    promise.catch(() => undefined);
    this.#clock.track(promise);
  }
}

/** An object that says what it does not offer. */
function only<T extends object>(offered: T, what: string): T {
  return new Proxy(offered, {
    get(target, key) {
      if (!(key in target) && typeof key === "string" && key !== "then") {
        throw new Error(`${what}.${key} is not offered by @dueline/durable-object/testing`);
      }
      const found: unknown = Reflect.get(target, key, target);
      return typeof found === "function" ? (found.bind(target) as unknown) : found;
    },
  });
}

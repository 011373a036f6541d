import { TestAlarm, type ServedAlarm } from "./alarm.js";
import { TestClock } from "./clock.js";
import { known } from "./options.js";
import { openDatabase, TestSql, type Value } from "./sql.js";
import { TestState } from "./state.js";

/** What an object's class is to a test. */
interface ObjectClass<T, Env> {
  new (ctx: DurableObjectState, env: Env): T;
  readonly prototype: T;
}

/** What serves alarms and requests, if the class does. */
interface Serving {
  alarm?(info: { retryCount: number; isRetry: boolean; scheduledTime: number }): unknown;
  fetch?(request: Request): Response | Promise<Response>;
}

/** How an object is opened. */
export interface TestObjectOptions<Env> {
  /** `ctx.id.name`; `"test"` without it. */
  readonly name?: string;
  readonly env?: Env;
}

/** One Durable Object under a {@link TestClock}: its instance, its database in memory, its alarm. */
export class TestObject<T extends object, Env = unknown> {
  readonly #clock: TestClock;
  #class: ObjectClass<T, Env>;
  readonly #name: string;
  readonly #env: Env;
  readonly #sql: TestSql;
  readonly #alarm: TestAlarm;
  #instance!: T;
  #state!: TestState;

  private constructor(clock: TestClock, made: ObjectClass<T, Env>, options: TestObjectOptions<Env>, sql: TestSql) {
    this.#clock = clock;
    this.#class = made;
    this.#name = options.name ?? "test";
    this.#env = options.env as Env;
    this.#sql = sql;
    this.#alarm = new TestAlarm(clock, async (info) => {
      await this.#state.gate;
      await (this.#instance as Serving).alarm?.(info);
    });
  }

  /** Builds an object with an empty database, and waits until its constructor blocks nothing any more. */
  static async open<T extends object, Env = unknown>(
    clock: TestClock,
    made: ObjectClass<T, Env>,
    options: TestObjectOptions<Env> = {},
  ): Promise<TestObject<T, Env>> {
    if (!(clock instanceof TestClock) || typeof made !== "function") {
      throw new TypeError("TestObject.open takes the clock of TestClock.install() and the class of the object");
    }
    known<TestObjectOptions<Env>>("TestObject.open", options, { name: true, env: true });
    const object = new TestObject(clock, made, options, new TestSql(await openDatabase()));
    await object.restart();
    return object;
  }

  /** The object itself: its methods are called as over RPC, in one turn with the test. */
  get instance(): T {
    return this.#instance;
  }

  /** When the object's alarm comes, in milliseconds since 1970; `null` if none is set. */
  get alarmAt(): number | null {
    return this.#alarm.at;
  }

  /** Every alarm that came, in order. */
  get alarms(): readonly ServedAlarm[] {
    return this.#alarm.served;
  }

  /** The rows that a statement returns, read past the object. */
  sql<R extends Record<string, Value> = Record<string, Value>>(statement: string, ...bindings: unknown[]): R[] {
    return this.#sql.exec(statement, ...bindings).toArray() as R[];
  }

  /** A request to the object's `fetch`. */
  async fetch(request: Request | string, init?: RequestInit): Promise<Response> {
    const served = (this.#instance as Serving).fetch?.(new Request(request, init));
    if (served === undefined) {
      throw new Error(`${this.#class.name} has no fetch()`);
    }
    return this.#clock.track(Promise.resolve(served));
  }

  /**
   * A new instance over the same database and alarm, as behind an eviction; with another class as behind the deploy of a
   * new version. It is this object, with the type of that class.
   */
  async restart<U extends object = T>(version?: ObjectClass<U, Env>): Promise<TestObject<U, Env>> {
    if (version !== undefined) {
      this.#class = version as unknown as ObjectClass<T, Env>;
    }
    const { prototype } = this.#class;
    let made: T | undefined;
    const hasHandler = (): boolean => typeof ((made ?? prototype) as Serving).alarm === "function";
    this.#state = new TestState(this.#clock, this.#name, this.#sql, this.#alarm, hasHandler);
    made = new this.#class(this.#state.asGiven, this.#env);
    this.#instance = made;
    await this.#state.gate;
    return this as unknown as TestObject<U, Env>;
  }
}

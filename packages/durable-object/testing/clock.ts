import { Globals } from "./globals.js";
import { known } from "./options.js";

/** How a clock starts. */
export interface TestClockOptions {
  /** The first time; 2030-01-01T00:00:00Z without it. */
  readonly now?: number | string | Date;
  /** What the randomness of back-off is drawn from; 1 without it. */
  readonly seed?: number;
  /**
   * How long the clock lets what is under way go on in real time before it moves, in real milliseconds; 25
   * without it. It matters only to a handler that waits for something that is not virtual.
   */
  readonly patience?: number;
}

/** Something that happens at a time. */
interface Event {
  readonly at: number;
  readonly number: number;
  readonly happen: () => void;
}

/** Turns of Node's loop without anything under way, after which all is quiet. */
const QUIET_TURNS = 3;

/**
 * A virtual clock in the place of `Date`, `performance.now`, `setTimeout`, `setInterval` and
 * `crypto.getRandomValues`, from {@link TestClock.install} to {@link TestClock.uninstall}. One at a time.
 *
 * Time stands still until {@link TestClock.advance}, which lets alarms and timeouts happen in their order,
 * each at its own time and each done with before the next.
 */
export class TestClock {
  static #installed: TestClock | undefined;
  readonly #events: Event[] = [];
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #patience: number;
  readonly #globals: Globals;
  readonly #began: number;
  #now: number;
  #lastNumber = 0;
  #isAdvancing = false;

  private constructor(options: TestClockOptions) {
    this.#now = new Date(options.now ?? "2030-01-01T00:00:00Z").getTime();
    if (!Number.isFinite(this.#now)) {
      throw new RangeError(`\`now\` is no time: ${String(options.now)}`);
    }
    this.#began = this.#now;
    this.#patience = options.patience ?? 25;
    this.#globals = new Globals(this, options.seed ?? 1);
  }

  /** Puts a clock in the place of the real one. */
  static install(options: TestClockOptions = {}): TestClock {
    if (TestClock.#installed !== undefined) {
      throw new Error("a TestClock is installed already; uninstall it first");
    }
    const clock = new TestClock(known<TestClockOptions>("TestClock.install", options, { now: true, seed: true, patience: true }));
    clock.#globals.replace();
    TestClock.#installed = clock;
    return clock;
  }

  /** Brings the real clock back. What has not happened never will. */
  uninstall(): void {
    if (TestClock.#installed === this) {
      this.#globals.restore();
      TestClock.#installed = undefined;
    }
    this.#events.length = 0;
  }

  /** In milliseconds since 1970. */
  get now(): number {
    return this.#now;
  }

  /** Milliseconds since the clock was installed. */
  get elapsed(): number {
    return this.#now - this.#began;
  }

  /** When something happens next; `undefined` if nothing is waited for. */
  get nextAt(): number | undefined {
    return this.#events[0]?.at;
  }

  /** Lets this many milliseconds pass, and everything happen that comes due in them. */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0 && Number.isFinite(ms))) {
      throw new RangeError(`time passes by a number of milliseconds from 0 on, not ${ms}`);
    }
    await this.advanceTo(this.#now + ms);
  }

  /** Lets time pass up to this, and everything happen that comes due until then. */
  async advanceTo(time: number | string | Date): Promise<void> {
    const until = new Date(time).getTime();
    if (!(until >= this.#now)) {
      throw new RangeError(`time does not go back from ${this.#now} to ${String(time)}`);
    }
    if (this.#isAdvancing) {
      throw new Error("the clock is being advanced already; await it first");
    }
    this.#isAdvancing = true;
    try {
      await this.settle();
      for (let next = this.#events[0]; next !== undefined && next.at <= until; next = this.#events[0]) {
        this.#events.shift();
        this.#now = Math.max(this.#now, next.at);
        next.happen();
        await this.settle();
      }
      this.#now = until;
    } finally {
      this.#isAdvancing = false;
    }
  }

  /** Lets everything go on that needs no time, until it is done or waits for time to pass. */
  async settle(): Promise<void> {
    const begun = this.#globals.realNow();
    for (let turns = 0; turns < QUIET_TURNS || this.#isWaitedFor(begun); turns += 1) {
      await this.#globals.turn();
    }
  }

  /** @internal What is under way: the clock waits for it as long as its patience lasts. */
  track<T>(promise: Promise<T>): Promise<T> {
    this.#underWay.add(promise);
    const over = (): void => void this.#underWay.delete(promise);
    promise.then(over, over);
    return promise;
  }

  /** @internal */
  at(at: number, happen: () => void): number {
    this.#lastNumber += 1;
    const event = { at, number: this.#lastNumber, happen };
    const later = this.#events.findIndex((other) => other.at > at);
    this.#events.splice(later === -1 ? this.#events.length : later, 0, event);
    return event.number;
  }

  /** @internal */
  forget(number: number): void {
    const index = this.#events.findIndex((event) => event.number === number);
    if (index !== -1) {
      this.#events.splice(index, 1);
    }
  }

  #isWaitedFor(begun: number): boolean {
    return this.#underWay.size > 0 && this.#globals.realNow() - begun < this.#patience;
  }
}

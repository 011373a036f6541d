import type { TestClock } from "./clock.js";

/** An alarm that came. */
export interface ServedAlarm {
  readonly scheduledTime: number;
  /** When it came, in milliseconds since 1970. */
  readonly at: number;
  readonly retryCount: number;
  /** What the object's `alarm` threw; the platform tries it again. */
  readonly error?: unknown;
}

/** What serves an alarm. */
export type Serve = (info: { retryCount: number; isRetry: boolean; scheduledTime: number }) => Promise<void>;

/** The platform's: tries of an alarm that throws, and the delay before the first, doubled each time. */
const RETRIES_MAX = 6;
const RETRY_MS = 2_000;

/** The one alarm of an object, as the platform has it. */
export class TestAlarm {
  readonly served: ServedAlarm[] = [];
  readonly #clock: TestClock;
  readonly #serve: Serve;
  #at: number | null = null;
  #event: number | undefined;
  #isServing = false;
  #retryCount = 0;

  constructor(clock: TestClock, serve: Serve) {
    this.#clock = clock;
    this.#serve = serve;
  }

  /** `null` if none is set; while one is served, whether another has been set. */
  get at(): number | null {
    return this.#at;
  }

  set(at: number): void {
    this.#retryCount = 0;
    this.#wait(at);
  }

  delete(): void {
    this.#at = null;
    this.#forget();
  }

  #wait(at: number): void {
    this.#forget();
    this.#at = at;
    // One alarm is served at a time.
    if (!this.#isServing) {
      this.#event = this.#clock.at(Math.max(at, this.#clock.now), () => {
        void this.#clock.track(this.#come(at));
      });
    }
  }

  #forget(): void {
    if (this.#event !== undefined) {
      this.#clock.forget(this.#event);
      this.#event = undefined;
    }
  }

  async #come(scheduledTime: number): Promise<void> {
    const retryCount = this.#retryCount;
    const came = { scheduledTime, at: this.#clock.now, retryCount };
    this.#at = null;
    this.#event = undefined;
    this.#isServing = true;
    try {
      await this.#serve({ retryCount, isRetry: retryCount > 0, scheduledTime });
      this.served.push(came);
      this.#retryCount = 0;
    } catch (error) {
      this.served.push({ ...came, error });
      if (this.#at === null && retryCount < RETRIES_MAX) {
        this.#retryCount = retryCount + 1;
        this.#at = this.#clock.now + RETRY_MS * 2 ** retryCount;
      }
    } finally {
      this.#isServing = false;
      if (this.#at !== null) {
        this.#wait(this.#at);
      }
    }
  }
}

import type { DueTimer, Signalled } from "./handlers.js";
import { decodeName } from "./payload.js";

/** A due timer as the core hands it over. Its bytes lie in the module's memory: they are others behind the call. */
export type CoreTimer = [
  kind: number,
  run: number,
  reference: Uint8Array,
  isNamed: boolean,
  payload: Uint8Array,
  dueAt: number,
  now: number,
  attempt: number,
  generation: bigint,
  lastError: string | undefined,
];

/** One run of a handler: whether the engine still waits for it. */
export class Running {
  #abort: AbortController | undefined;
  #reason: DOMException | undefined;

  /** Made when it is asked for: most handlers do not, and the platform's are dear. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#reason !== undefined) {
        this.#abort.abort(this.#reason);
      }
    }
    return this.#abort.signal;
  }

  /** Whether nobody waits for it any more. */
  get isAbandoned(): boolean {
    return this.#reason !== undefined;
  }

  /** Nobody waits for it any more. */
  abandon(): void {
    this.#reason = new DOMException("the run has passed its deadline", "TimeoutError");
    this.#abort?.abort(this.#reason);
  }
}

/** What a hook is told, with a signal that no copy of it has: it is made when it is asked for. */
export function withSignal<T extends object>(told: T, running: Running): T & Signalled {
  const signal = { get: (): AbortSignal => running.signal };
  return Object.defineProperty(told, "signal", signal) as T & Signalled;
}

/** The longest wait of most runtimes, in milliseconds: one that is longer ends at once. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/**
 * An answer, or what `failure` makes of its error. With a deadline in milliseconds that of `late` if it has not come by
 * then: nobody waits for it any more, and whatever it brings is dropped.
 */
export function inTime<T>(
  answer: PromiseLike<T>,
  running: Running,
  ms: number | undefined,
  late: (ms: number) => unknown,
  failure: (thrown: unknown) => string,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (after: number): void => {
      reject(failure(late(after)));
      running.abandon();
    };
    const timer = ms === undefined ? null : setTimeout(() => giveUp(ms), Math.min(ms, TIMEOUT_MS_MAX));
    // Made a promise of the platform's own: what was returned may call back at once, or twice.
    Promise.resolve(answer).then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (thrown: unknown) => {
        clearTimeout(timer);
        if (!running.isAbandoned) {
          reject(failure(thrown));
        }
      },
    );
  });
}

/** A name that stands in an id as it is. */
const UNESCAPED = /^[\w.!~*'()-]*$/;

/**
 * A due timer as its handler sees it. What it is known by is its own, for copies of it; the signal is not, which is
 * seldom asked for and dear.
 */
class Due implements DueTimer {
  // Not there at all where there is none.
  declare readonly name?: string;
  declare readonly lastError?: string;
  readonly kind: string;
  readonly payload: unknown;
  readonly dueAt: number;
  readonly now: number;
  readonly attempt: number;
  readonly generation: string;
  readonly occurrenceId: string;
  readonly #running: Running;

  constructor(timer: CoreTimer, kind: string, payload: unknown, running: Running, identity: string) {
    const lent = timer[2];
    const lastError = timer[9];
    this.kind = kind;
    this.payload = payload;
    this.dueAt = timer[5];
    this.now = timer[6];
    this.attempt = timer[7];
    this.generation = String(timer[8]);
    const reference = decodeName(lent);
    const escaped = UNESCAPED.test(reference) ? reference : encodeURIComponent(reference);
    this.occurrenceId = `${identity}/${timer[0]}/${escaped}/${this.generation}`;
    this.#running = running;
    if (timer[3]) {
      this.name = reference;
    }
    if (lastError !== undefined) {
      this.lastError = lastError;
    }
  }

  get signal(): AbortSignal {
    return this.#running.signal;
  }
}

/** A due timer of the core's, for its handler. */
export function dueTimer(
  timer: CoreTimer,
  kind: string,
  payload: unknown,
  running: Running,
  identity: string,
): DueTimer {
  return new Due(timer, kind, payload, running, identity);
}

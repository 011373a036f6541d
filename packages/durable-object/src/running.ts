import type { DueTimer } from "./handlers.js";
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

/** A due timer as its handler sees it. What is seldom asked for is made when it is. */
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
  readonly #kindNumber: number;
  readonly #reference: Uint8Array;
  readonly #running: Running;
  readonly #identity: string;

  constructor(timer: CoreTimer, kind: string, payload: unknown, running: Running, identity: string) {
    const [number, , lent, isNamed, , dueAt, now, attempt, generation, lastError] = timer;
    this.kind = kind;
    this.payload = payload;
    this.dueAt = dueAt;
    this.now = now;
    this.attempt = attempt;
    this.generation = String(generation);
    this.#kindNumber = number;
    this.#reference = lent.slice();
    this.#running = running;
    this.#identity = identity;
    if (isNamed) {
      this.name = decodeName(lent);
    }
    if (lastError !== undefined) {
      this.lastError = lastError;
    }
  }

  get occurrenceId(): string {
    const reference = encodeURIComponent(decodeName(this.#reference));
    return `${this.#identity}/${this.#kindNumber}/${reference}/${this.generation}`;
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

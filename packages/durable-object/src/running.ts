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

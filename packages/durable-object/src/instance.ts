import type { Engine } from "./engine.js";
import { DuelineError, fromCore, isCoreError, textOf } from "./errors.js";

/**
 * One instance of the WebAssembly module, shared by the objects of an isolate.
 *
 * A trap loses everything in it. Whoever waits for it is told so, a new instance takes its place, and
 * each object opens its timers anew at its next call.
 */
export class Instance {
  readonly #engine: Engine;
  readonly #waiting = new Set<(crash: DuelineError) => void>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Whether another instance has taken its place. */
  get isLost(): boolean {
    return this !== this.#engine.current;
  }

  /** Calls into the module, and waits for the promise that the call returns. */
  wait(call: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const fail = (thrown: unknown): void => {
        this.#waiting.delete(reject);
        reject(fromCore(thrown));
      };
      try {
        const entered = this.enter(call);
        this.#waiting.add(reject);
        entered.then((value) => {
          this.#waiting.delete(reject);
          resolve(value);
        }, fail);
      } catch (thrown) {
        fail(thrown);
      }
    });
  }

  /** Calls into the module. Whatever comes out but an error of its own has broken it. */
  enter<T>(call: () => T): T {
    if (this.isLost) {
      throw new DuelineError("crashed", "the engine trapped in the meantime");
    }
    try {
      return call();
    } catch (thrown) {
      if (isCoreError(thrown)) {
        throw thrown;
      }
      throw this.#replace(thrown);
    }
  }

  /** Polls a task in a microtask of its own. */
  wake(task: number): void {
    // As `queueMicrotask`, which costs a call out of JavaScript.
    void SOON.then(() => {
      if (this.isLost) {
        return;
      }
      try {
        this.#engine.module.poll_task(task);
      } catch (thrown) {
        this.#replace(thrown);
      }
    });
  }

  /** Puts a new instance in the place of this one. */
  #replace(thrown: unknown): DuelineError {
    const crash = new DuelineError("crashed", `the engine trapped: ${textOf(thrown)}`, { cause: thrown });
    console.error(crash);
    this.#engine.renew();
    for (const giveUp of this.#waiting) {
      giveUp(crash);
    }
    return crash;
  }
}

const SOON = Promise.resolve();

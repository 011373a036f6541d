import { DuelineError, textOf } from "./errors.js";
import type { Effects } from "./outcomes.js";

/** Effects that wait for their commit. */
interface Kept<Run> {
  readonly kind: string;
  readonly effects: Effects;
  /** The run of a handler that returned them, if one did. */
  readonly run?: Run;
  /** The verb that they are committed by; none if that is the alarm. */
  readonly verb?: Verb | undefined;
}

/** Who hears what became of the effects of a run. */
interface Hearing<Run> {
  done(run: Run): void;
  failed(run: Run, reason: string, thrown?: { readonly value: unknown }): void;
}

/** A verb that is under way, and what is kept for it. */
interface Verb {
  readonly numbers: number[];
  /** What effects or hooks of it threw. */
  thrown?: unknown;
}

/**
 * Effects by the numbers under which their commits ask for them.
 *
 * A commit asks for those of its own plan alone. So those of a verb are forgotten when it is over, with those
 * that hooks returned to it, and those of runs when the alarm is: a plan that lost a guard is made anew, and
 * its hooks are asked anew.
 */
export class KeptEffects<Run> {
  readonly #hearing: Hearing<Run>;
  readonly #kept = new Map<number, Kept<Run>>();
  readonly #verbs = new Map<number, Verb>();
  #last = 0;
  #isBusy = false;

  constructor(hearing: Hearing<Run>) {
    this.#hearing = hearing;
  }

  /** Whether effects are being done: the store is in the middle of a transaction. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Keeps effects of a run for a commit of the alarm. */
  keep(kind: string, effects: Effects, run: Run): number {
    return this.#put({ kind, effects, run });
  }

  /** Keeps effects that a hook returned, for a commit of the verb of this number, or of the alarm. */
  keepOfHook(hook: string, effects: Effects, verb: number | undefined): number {
    const of = verb === undefined ? undefined : this.#verbs.get(verb);
    return this.#put({ kind: hook, effects, verb: of });
  }

  /** Runs a verb with the number of its effects. What they throw, or a hook that it asks, is its error. */
  async during<T>(kind: string, effects: Effects, run: (number: number) => Promise<T>): Promise<T> {
    const number = this.#last + 1;
    const verb: Verb = { numbers: [] };
    this.#verbs.set(number, verb);
    this.#put({ kind, effects, verb });
    try {
      return await run(number);
    } catch (error) {
      throw "thrown" in verb ? verb.thrown : error;
    } finally {
      this.#verbs.delete(number);
      for (const kept of verb.numbers) {
        this.#kept.delete(kept);
      }
    }
  }

  /** Notes what was thrown under the verb of this number, if there is one. */
  threw(verb: number | undefined, thrown: unknown): void {
    const of = verb === undefined ? undefined : this.#verbs.get(verb);
    if (of !== undefined) {
      of.thrown = thrown;
    }
  }

  /** Forgets those of runs, which are all over. */
  forgetRuns(): void {
    for (const [number, { verb }] of this.#kept) {
      if (verb === undefined) {
        this.#kept.delete(number);
      }
    }
  }

  /** Does effects; returns why they could not be done, if they could not. */
  do(number: number): string | undefined {
    const found = this.#kept.get(number);
    if (found === undefined) {
      return "the effects of an earlier run are gone";
    }
    const { run, verb } = found;
    const failed = (reason: string, thrown?: { readonly value: unknown }): string => {
      if (run !== undefined) {
        this.#hearing.failed(run, reason, thrown);
      }
      return reason;
    };
    this.#isBusy = true;
    try {
      const returned: unknown = found.effects();
      if (isThenable(returned)) {
        // What it goes on to do is beyond the transaction; its error is nobody's any more.
        Promise.resolve(returned).catch(() => undefined);
        return failed(`effects_async: the effects of \`${found.kind}\` returned a promise; await before you return them`);
      }
      if (run !== undefined) {
        this.#hearing.done(run);
      }
      return undefined;
    } catch (thrown) {
      if (verb !== undefined) {
        verb.thrown = thrown;
      }
      return failed(`the effects failed: ${textOf(thrown)}`, { value: thrown });
    } finally {
      this.#isBusy = false;
    }
  }

  #put(kept: Kept<Run>): number {
    this.#last += 1;
    this.#kept.set(this.#last, kept);
    kept.verb?.numbers.push(this.#last);
    return this.#last;
  }
}

/** Effects that an application gave: a function that does not wait. */
export function checkedEffects(kind: string, effects: unknown): Effects {
  if (typeof effects !== "function" || isAsync(effects as Effects)) {
    throw new DuelineError("effects_async", `the effects of \`${kind}\` are a function that writes and returns nothing`);
  }
  return effects as Effects;
}

export function isAsync(effects: Effects): boolean {
  return Object.prototype.toString.call(effects) === "[object AsyncFunction]";
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

import { isThenable } from "./checks.js";
import { DuelineError, inWords, textOf } from "./errors.js";
import { answerOf, type Effects } from "./outcomes.js";

/** Effects that wait for their commit. */
interface Kept<R> {
  readonly kind: string;
  readonly effects: Effects;
  /** The verb that they are committed by; none if that is the alarm. */
  readonly verb: Verb | undefined;
  /** The run that returned them. */
  readonly run: R | undefined;
  /** Why its timer is given up with them, if it is. */
  readonly dead: string | undefined;
}

/** Is told what became of a run's effects. */
interface Told<R> {
  failed(run: R | undefined, reason: string, thrown?: { readonly value: unknown }): void;
  dead(run: R, reason: string): void;
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
export class KeptEffects<R> {
  readonly #kept = new Map<number, Kept<R>>();
  readonly #verbs = new Map<number, Verb>();
  readonly #told: Told<R>;
  #last = 0;
  #isBusy = false;

  constructor(told: Told<R>) {
    this.#told = told;
  }

  /** Whether effects are being done: the store is in the middle of a transaction. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /**
   * Keeps effects for a commit of the alarm, or of the verb of a number: what a run returned, and why its timer is given
   * up with them, if it is.
   */
  keep(kind: string, effects: Effects, verb?: number, run?: R, dead?: string): number {
    const of = verb === undefined ? undefined : this.#verbs.get(verb);
    if (verb !== undefined && of === undefined) {
      // The verb is over: nobody would forget them.
      return 0;
    }
    this.#last += 1;
    this.#kept.set(this.#last, { kind, effects, verb: of, run, dead });
    of?.numbers.push(this.#last);
    return this.#last;
  }

  /** Runs a verb with the number of its effects. What they throw, or a hook that it asks, is its error. */
  async during<T>(kind: string, effects: Effects, run: (number: number) => Promise<T>): Promise<T> {
    const number = this.#last + 1;
    const verb: Verb = { numbers: [] };
    this.#verbs.set(number, verb);
    this.keep(kind, effects, number);
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
    this.#isBusy = true;
    try {
      const returned: unknown = found.effects();
      if (isThenable(returned)) {
        // What it goes on to do is beyond the transaction; its error is nobody's any more.
        Promise.resolve(returned).catch(() => undefined);
        const reason = `effects_async: the effects of \`${found.kind}\` returned a promise; await before you return them`;
        this.#told.failed(found.run, reason);
        return reason;
      }
      const answer = answerOf(returned);
      if (answer !== undefined) {
        throw new DuelineError("bad_outcome", `the effects of \`${found.kind}\` returned ${answer}: they only write; return it beside them`);
      }
      if (found.dead !== undefined && found.run !== undefined) {
        this.#told.dead(found.run, found.dead);
      }
      return undefined;
    } catch (thrown) {
      if (found.verb !== undefined) {
        found.verb.thrown = thrown;
      }
      const reason = `the effects failed: ${textOf(thrown)}`;
      this.#told.failed(found.run, reason, { value: thrown });
      return reason;
    } finally {
      this.#isBusy = false;
    }
  }
}

/** Effects that an application gave: a function that does not wait. */
export function checkedEffects(kind: string, effects: unknown): Effects {
  const isFunction = typeof effects === "function";
  // Else it is asynchronous, a generator, or a stub of one elsewhere.
  if (!isFunction || Object.prototype.toString.call(effects) !== "[object Function]") {
    const code = isFunction ? "effects_async" : "invalid";
    throw new DuelineError(code, `the effects of \`${kind}\` are a function that writes, returns nothing, and is no async one, not ${inWords(effects)}`);
  }
  return effects as Effects;
}

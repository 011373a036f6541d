import { optionsOf, type Known } from "./checks.js";
import { DuelineError, inWords, textOf } from "./errors.js";
import type { KindOf, PayloadOf, Payloads, Policy, When } from "./types.js";

/**
 * Writes to the object's own tables that commit with the timer's removal, or not at all.
 *
 * Called inside `transactionSync`. It must be done when it returns: no promise. If it throws, everything
 * is rolled back and the timer has failed. It may be called again if its transaction is rolled back, so
 * keep to the database: a variable that it changes is not set back.
 */
export type Effects = () => NoAnswer;

/** What is left over where effects are one expression: it is dropped. An outcome, or anything that is to be done, is not. */
type NoAnswer = void | null | undefined | boolean | number | bigint | string | symbol | Leftover;

/** What has no part by which an outcome, what goes with one, a promise, or a function is known. */
type Leftover = object & { readonly [K in "then" | "apply" | "said" | keyof typeof TOGETHER]?: never };

/** Another timer, scheduled in the commit of the one that fires. */
export type FollowUp<P extends Payloads> = {
  [K in KindOf<P>]: { readonly kind: K } & When &
    ({ readonly name?: string; readonly policy?: never } | { readonly name: string; readonly policy?: Policy }) &
    PayloadOf<P[K]>;
}[KindOf<P>];

/** Another timer, cancelled in the commit of the one that fires: whatever its state, dead included. */
export interface CancelWith<P extends Payloads> {
  readonly kind: KindOf<P>;
  readonly name: string;
}

/** What commits together with what becomes of a timer. */
export interface Together<P extends Payloads = Payloads> {
  readonly effects?: Effects;
  /** Timers to be scheduled. With all that is beside them at most 18. */
  readonly schedule?: readonly FollowUp<P>[];
  /** Timers to be cancelled. One that is not there is none. */
  readonly cancel?: readonly CancelWith<P>[];
}

const WHEN: Known<When & { readonly payload?: unknown }> = { dueAt: true, after: true, payload: true };
/** Outcomes are told by the entry that has outboxes, and refused by the other where they are looked at. */
const TOGETHER: Known<Together & { readonly outbox?: unknown }> = { effects: true, schedule: true, cancel: true, outbox: true };

/**
 * What becomes of a timer: made by {@link done}, {@link reschedule}, {@link retry} or {@link dead}. It is of the
 * kinds that it may schedule, and of the payload that its own timer goes on with.
 */
export class Outcome<P extends Payloads = any, T = any> {
  /** @internal */
  constructor(
    readonly said: "done" | "reschedule" | "retry" | "dead",
    readonly details: {
      readonly when?: When;
      readonly payload?: { readonly value: T };
      readonly afterMs?: number;
      readonly reason?: string;
      readonly together?: Together<P>;
    },
  ) {}
}

/**
 * What effects returned that is taken for something to be done, in words; `undefined` if it is none. What an expression
 * leaves over is none: a number, a row, the cursor of a statement.
 */
export function answerOf(returned: unknown): string | undefined {
  if (returned instanceof Outcome) {
    return `an outcome, \`${returned.said}\``;
  }
  if (typeof returned === "function") {
    return inWords(returned);
  }
  const { effects, schedule, cancel, outbox } = (returned ?? {}) as { readonly [K in keyof typeof TOGETHER]?: unknown };
  const isTogether = typeof effects === "function" || [schedule, cancel, outbox].some(Array.isArray);
  return isTogether ? inWords(returned) : undefined;
}

/** The timer is done and goes. The same as returning nothing, or the effects themselves. */
export function done<P extends Payloads = any>(together: Effects | Together<P> = {}): Outcome<P, never> {
  return new Outcome("done", { together: togetherOf(together) });
}

/**
 * The timer is scheduled again under a new generation, its attempts back at 0. Compute the next due from
 * `timer.dueAt` and it does not drift; of what was missed each due comes, unless the next is computed behind `timer.now`.
 * Without a payload it keeps the one it has.
 */
export function reschedule<P extends Payloads = any, T = never>(
  when: When & { readonly payload?: T },
  together: Effects | Together<P> = {},
): Outcome<P, T> {
  if (typeof when !== "object" || when === null) {
    throw new DuelineError("bad_outcome", `\`reschedule\` takes { dueAt } or { after }, not ${inWords(when)}`);
  }
  return new Outcome("reschedule", {
    when: optionsOf("`reschedule`", when, WHEN),
    ...("payload" in when ? { payload: { value: when.payload as T } } : {}),
    together: togetherOf(together),
  });
}

/** The run failed: an attempt is counted and the timer tried again, after this span or the kind's back-off. */
export function retry(reason: string, after?: number): Outcome<any, never> {
  return new Outcome("retry", { reason: reasonOf("retry", reason), ...(after === undefined ? {} : { afterMs: after }) });
}

/** The timer is given up: it goes to the dead letters. */
export function dead<P extends Payloads = any>(
  reason: string,
  together: Effects | Together<P> = {},
): Outcome<P, never> {
  return new Outcome("dead", { reason: reasonOf("dead", reason), together: togetherOf(together) });
}

/** A reason in words. An error that is handed on as one is its message. */
function reasonOf(outcome: string, reason: unknown): string {
  if (reason === undefined || reason === null) {
    throw new DuelineError("bad_outcome", `\`${outcome}\` takes a reason, a string, not ${inWords(reason)}`);
  }
  if (typeof reason === "string") {
    return reason;
  }
  return reason instanceof Error ? textOf(reason) : inWords(reason);
}

function togetherOf<P extends Payloads>(together: Effects | Together<P>): Together<P> {
  if (typeof together === "function") {
    return { effects: together };
  }
  if (typeof together !== "object" || together === null) {
    throw new DuelineError("bad_outcome", `what goes with an outcome is a function or { effects, schedule, cancel }, not ${inWords(together)}`);
  }
  const { effects } = optionsOf("what goes with an outcome", together, TOGETHER);
  if (effects !== undefined && typeof effects !== "function") {
    throw new DuelineError("bad_outcome", `\`effects\` is a function that writes and returns nothing, not ${inWords(effects)}`);
  }
  return together;
}

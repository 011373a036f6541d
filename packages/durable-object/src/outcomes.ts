import { DuelineError } from "./errors.js";
import type { KindOf, Payloads, Schedule, When } from "./types.js";

/**
 * Writes to the object's own tables that commit with the timer's removal, or not at all.
 *
 * Called inside `transactionSync`. It must be done when it returns: no promise. If it throws, everything
 * is rolled back and the timer has failed. It may be called again if its transaction is rolled back, so
 * keep to the database: a variable that it changes is not set back.
 */
export type Effects = () => void;

/** Another timer, scheduled in the commit of the one that fires. */
export type FollowUp<P extends Payloads> = {
  [K in KindOf<P>]: { readonly kind: K } & Omit<Schedule<P[K]>, "ifMatch"> & When;
}[KindOf<P>];

/** What commits together with what becomes of a timer. */
export interface Together<P extends Payloads = Payloads> {
  readonly effects?: Effects;
  /** Timers to be scheduled, at most 20. */
  readonly schedule?: readonly FollowUp<P>[];
}

/** What becomes of a timer: made by {@link done}, {@link reschedule}, {@link retry} or {@link dead}. */
export class Outcome {
  /** @internal */
  constructor(
    readonly said: "done" | "reschedule" | "retry" | "dead",
    readonly details: {
      readonly when?: When;
      readonly payload?: { readonly value: unknown };
      readonly afterMs?: number;
      readonly reason?: string;
      readonly together?: Together;
    },
  ) {}
}

/** The timer is done and goes. The same as returning nothing, or the effects themselves. */
export function done<P extends Payloads>(together: Effects | Together<P> = {}): Outcome {
  return new Outcome("done", { together: togetherOf(together) });
}

/**
 * The timer is scheduled again under a new generation, its attempts back at 0. Compute the next due from
 * `timer.dueAt` and it does not drift. Without a payload it keeps the one it has.
 */
export function reschedule<P extends Payloads>(
  when: When & { readonly payload?: unknown },
  together: Effects | Together<P> = {},
): Outcome {
  return new Outcome("reschedule", {
    when,
    ...("payload" in when ? { payload: { value: when.payload } } : {}),
    together: togetherOf(together),
  });
}

/** The run failed: an attempt is counted and the timer tried again, after this span or the kind's back-off. */
export function retry(reason: string, after?: number): Outcome {
  return new Outcome("retry", { reason, ...(after === undefined ? {} : { afterMs: after }) });
}

/** The timer is given up: it goes to the dead letters. */
export function dead<P extends Payloads>(
  reason: string,
  together: Effects | Together<P> = {},
): Outcome {
  return new Outcome("dead", { reason, together: togetherOf(together) });
}

function togetherOf<P extends Payloads>(together: Effects | Together<P>): Together {
  if (typeof together === "function") {
    return { effects: together };
  }
  if (together.effects !== undefined && typeof together.effects !== "function") {
    throw new DuelineError("bad_outcome", "`effects` is a function that writes and returns nothing");
  }
  return together as Together;
}

import type { Effects, Outcome } from "./outcomes.js";
import type { KindOf, Payloads } from "./types.js";

/** Of the types alone: an accessor of a class is not among what a copy by `{ ...of }` has. */
export declare abstract class Signalled {
  /** Aborted when nobody waits any more: what comes back then is dropped. */
  get signal(): AbortSignal;
}

/**
 * A timer that is being fired, as its handler sees it. Its `signal` is in no copy of it, `{ ...timer }` or in JSON. An RPC
 * takes the copy: it takes no object of a class.
 */
export interface DueTimer<T = unknown> extends Signalled {
  readonly kind: string;
  /** Without one the timer is anonymous. */
  readonly name?: string;
  readonly payload: T;
  /** The due as it was asked for, in milliseconds since 1970. */
  readonly dueAt: number;
  /** The time of this run, in milliseconds since 1970. */
  readonly now: number;
  /** Which run this is; 1 is the first. */
  readonly attempt: number;
  readonly generation: string;
  /** The same for every retry of this scheduling: an idempotency key for whoever is called. */
  readonly occurrenceId: string;
  readonly lastError?: string;
}

/** What a handler may return: an outcome, effects that go with the timer's removal, or nothing. */
export type Returned<P extends Payloads = any, T = any> = Outcome<P, T> | Effects | void;

/**
 * Handles a timer. It may be asynchronous. An error that it throws is a failed attempt.
 *
 * What it does itself happens at least once, as it may run again after a crash or a failure; what it
 * returns happens exactly once.
 */
export type Handler<T, P extends Payloads = any> = (timer: DueTimer<T>) => Returned<P, T> | Promise<Returned<P, T>>;

/** How failures of a kind are retried. */
export interface Retry {
  /** Failed attempts after which a timer is dead; 20 without it, `Infinity` never. */
  readonly attempts?: number;
  /** The delay after the first failure, in milliseconds, doubled each time; 5,000 without it. */
  readonly initial?: number;
  /** The longest delay, in milliseconds; 600,000 without it. */
  readonly max?: number;
  /** The most that chance adds to a delay, in percent, 0 to 100; 20 without it. */
  readonly jitter?: number;
}

/** What both ways of running have in common. */
export interface KindOptions<T> {
  /** How failures are retried. */
  readonly retry?: Retry;
  /** How long a run may take, in milliseconds. Without it 5,000, or 30,000 if detached. */
  readonly deadline?: number;
  /** Most runs of this kind in one tick. */
  readonly perTick?: number;
  /**
   * Checks and converts a stored payload. If it throws, the timer goes to the dead letters as
   * `undecodable`, unchanged and without a counted attempt.
   */
  readonly parse?: (payload: unknown) => T;
  /**
   * Raise it when `parse` has learnt to read what it could not: dead letters that an earlier version
   * could not decode are scheduled again. 1 without it.
   */
  readonly version?: number;
}

/** A kind that is run in place, one timer after another. */
export interface Inline<T, P extends Payloads = any> extends KindOptions<T> {
  readonly run: Handler<T, P>;
  /** Most timers that commit together, 1 to 1,024; 1 without it. */
  readonly group?: number;
  readonly call?: never;
}

/** Of the types alone. Without it every function were such a kind: it has a `call` of its own. */
declare const madeByDetached: unique symbol;

/**
 * A kind whose timers call out: each is claimed durably, its call runs beside others within the alarm,
 * and what the call brings back is settled. Made by {@link detached}.
 */
export interface Detached<T, P extends Payloads = any> extends KindOptions<T> {
  /** What its call brings back is what its settle takes: looked at there, and nowhere else. */
  readonly [madeByDetached]: true;
  /** Goes out. May run again for the same occurrence. */
  readonly call: (timer: DueTimer<T>) => unknown;
  /** Decides what becomes of the timer. May run again for one call. Without it the timer is done. */
  readonly settle?: (timer: DueTimer<T>, output: never) => Returned<P, T> | Promise<Returned<P, T>>;
  /** Most calls of this kind at a time; 16 without it. */
  readonly concurrency?: number;
  readonly run?: never;
}

/** The types come from where the kind stands, not from what its `settle` returns. */
type Settled<P extends Payloads, T> = Returned<NoInfer<P>, NoInfer<T>>;

/** A detached kind, with the type of what its call brings back. */
export function detached<T, Output, P extends Payloads = any>(
  kind: KindOptions<T> & {
    readonly call: (timer: DueTimer<T>) => Output | Promise<Output>;
    readonly settle?: (timer: DueTimer<T>, output: Output) => Settled<P, T> | Promise<Settled<P, T>>;
    readonly concurrency?: number;
  },
): Detached<T, P> {
  return kind as unknown as Detached<T, P>;
}

/** A kind: its handler, or its handler with options. */
export type Kind<T, P extends Payloads = any> = Handler<T, P> | Inline<T, P> | Detached<T, P>;

/** The kinds of an object, by their names. A name is stored: to rename a kind is to make a new one. */
export type Handlers<P extends Payloads> = { readonly [K in KindOf<P>]: Kind<P[K], P> };

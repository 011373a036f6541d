// What the built-in kinds of an object ask of it.
import type { Running } from "./running.js";

/** Keeps effects that a hook returned, if it did, for the commit that goes with its answer: their number, or 0. */
export type Keep = (effects: unknown) => number;

/**
 * A function that a built-in kind asks. What it answers is for the core; effects of the application it keeps.
 * `running` is whether the engine still waits for what it promised. What it throws is told to the log; `failed` tells
 * of a failure that is an answer.
 */
export type Hook = (argument: unknown, keep: Keep, running: Running, failed: (thrown: unknown) => void) => unknown;

/** What a person is told of a hook that failed. */
export interface About {
  /** The kind that asked, as `$ticket_expiry`. */
  readonly kind: string;
  readonly hook: string;
  readonly name: string;
  readonly sequence?: number;
  /** Whether a run of a timer fails with it. */
  readonly failsRun: boolean;
}

/** The built-in kinds of an object. */
export interface BuiltIn {
  /** As the core reads them. */
  readonly settings: object;
  /** What they ask, by its name. */
  readonly hooks: Record<string, Hook>;
  /** How long one may take, in milliseconds, if that is said. An alarm waits for none longer than the engine does. */
  readonly deadlines: Readonly<Record<string, number>>;
  /** Their numbers, by the names under which they are shown, whether the object has them or not. */
  readonly kinds: Readonly<Record<string, number>>;
  /** The numbers of those that it has. */
  readonly handled: ReadonlySet<number>;
  /** What is said of a hook by its name and argument, if it fails. */
  readonly about: (hook: string, argument: unknown) => About | undefined;
  /** What they have the core commit with what becomes of a timer. */
  readonly together: (together: object) => { readonly outbox?: readonly unknown[] };
}

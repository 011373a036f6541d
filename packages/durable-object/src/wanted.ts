import { listOf } from "./checks.js";
import { DuelineError, inWords } from "./errors.js";
import type { Policy } from "./types.js";

/** A timer to be scheduled or cancelled, as the core reads it. */
export interface CoreWanted {
  readonly kind: number;
  readonly reference: string;
  readonly isNamed: boolean;
  readonly dueAt: number;
  readonly payload: Uint8Array;
  /** The number of its policy, or {@link CANCEL}. */
  readonly policy: number;
}

/** In the place of a policy: the timer of the name is cancelled. */
export const CANCEL = 3;
export const NOTHING = new Uint8Array();
/** The policies by their numbers. */
const POLICIES: readonly Policy[] = ["replace", "keepEarliest", "ifAbsent"];
const FOLLOW_UPS_MAX = 20;

/** A policy as the core reads it. */
export function policyNumber(policy: Policy = "replace"): number {
  const number = POLICIES.indexOf(policy);
  if (number === -1) {
    throw new DuelineError("invalid", `a policy is ${POLICIES.join(", ")}, not ${inWords(policy)}`);
  }
  return number;
}

/** Timers that go with another, none or a list of them. */
export function atMost<T>(what: string, timers: readonly T[] = []): readonly T[] {
  return listOf(`timers that are ${what} with another`, timers, 0, FOLLOW_UPS_MAX);
}

/** Each name once: of two plans for it the later one would know nothing of the earlier. */
export function once(timers: readonly CoreWanted[]): void {
  const names = new Set<string>();
  for (const { kind, reference, isNamed } of timers) {
    const name = `${kind} ${reference}`;
    if (isNamed && names.has(name)) {
      throw new DuelineError("invalid", `a timer is scheduled or cancelled once with another, not twice: ${JSON.stringify(reference)}`);
    }
    names.add(name);
  }
}

import { listOf, type Known } from "./checks.js";
import { DuelineError, inWords } from "./errors.js";
import type { CancelWith, FollowUp } from "./outcomes.js";
import type { Payloads, Policy } from "./types.js";

/** A timer to be scheduled or cancelled, as the core reads it. */
export interface CoreWanted {
  readonly kind: number;
  readonly reference: string;
  readonly isNamed: boolean;
  readonly dueAt: number;
  readonly payload: Uint8Array;
  /** The number of its policy, or {@link CANCEL}. */
  readonly policy: number;
  /** The generation that it is to replace. */
  readonly ifMatch?: bigint;
}

const encoder = new TextEncoder();

/** In the place of a policy: the timer of the name is cancelled. */
export const CANCEL = 3;
export const NOTHING = new Uint8Array();
/** What is said of a timer that is scheduled, or cancelled, with another. */
export const FOLLOW_UP: Known<FollowUp<Payloads>> = { kind: true, name: true, dueAt: true, after: true, payload: true, policy: true };
export const CANCELLED: Known<CancelWith<Payloads>> = { kind: true, name: true };
/** The policies by their numbers. */
const POLICIES: readonly Policy[] = ["replace", "keepEarliest", "ifAbsent"];
/**
 * Most timers and outcomes that go with another: each takes up to five of the 92 operations of a batch, as a timer
 * does that replaces one of its name and an outcome that is alone in its outbox, and effects take one.
 */
const TOGETHER_MAX = 18;

/** A policy as the core reads it. */
export function policyNumber(policy: Policy = "replace"): number {
  const number = POLICIES.indexOf(policy);
  if (number === -1) {
    throw new DuelineError("invalid", `a policy is ${POLICIES.join(", ")}, not ${inWords(policy)}`);
  }
  return number;
}

/** What goes with a timer, none or a list of it. */
export function goingWith<T>(what: string, list: readonly T[] = []): T[] {
  return listOf(`${what} with another`, list, 0, TOGETHER_MAX);
}

/** Refuses more in all than one batch can always hold. */
export function notTooMany(count: number): void {
  if (count > TOGETHER_MAX) {
    throw new DuelineError("invalid", `at most ${TOGETHER_MAX} timers and outcomes go with another, not ${count}`);
  }
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

/** How many numbers the core reads of each timer, in front of its name and payload. */
const NUMBERS = 8;

/** Timers as the core reads them, one behind the other: an object would cost a call for each of its parts. */
export function packed(timers: readonly CoreWanted[]): Uint8Array {
  const names = timers.map(({ reference }) => (reference === "" ? NOTHING : encoder.encode(reference)));
  const length = timers.reduce((sum, { payload }, index) => sum + (names[index]?.length ?? 0) + payload.length, 0);
  const bytes = new Uint8Array(timers.length * NUMBERS * 8 + length);
  const view = new DataView(bytes.buffer);
  let at = 0;
  timers.forEach(({ kind, isNamed, dueAt, payload, policy, ifMatch }, index) => {
    const name = names[index] ?? NOTHING;
    const [high, low] = ifMatch === undefined ? [-1, -1] : [Number(ifMatch >> 32n), Number(ifMatch & 0xffff_ffffn)];
    for (const number of [kind, Number(isNamed), dueAt, policy, name.length, payload.length, high, low]) {
      view.setFloat64(at, number, true);
      at += 8;
    }
    for (const part of [name, payload]) {
      bytes.set(part, at);
      at += part.length;
    }
  });
  return bytes;
}

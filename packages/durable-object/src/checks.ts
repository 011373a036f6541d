import { DuelineError, inWords } from "./errors.js";
import type { When } from "./types.js";

/** 9999-12-31T23:59:59.999Z. */
const DUE_MAX = 253_402_300_799_999;
const NAME_BYTES_MAX = 512;
const encoder = new TextEncoder();

/** The due of a timer in whole milliseconds, never before what was asked for. */
export function dueOf(when: When): number {
  if (typeof when !== "object" || when === null) {
    throw new DuelineError("invalid", `a timer needs \`dueAt\` or \`after\`: { after: 60_000 }, not ${inWords(when)}`);
  }
  const { dueAt, after } = when as { dueAt?: unknown; after?: unknown };
  if ((dueAt === undefined) === (after === undefined)) {
    throw new DuelineError("invalid", "a timer needs one of `dueAt` and `after`");
  }
  if (after === undefined) {
    return time("dueAt", dueAt);
  }
  return time("now and `after`", Date.now() + span("after", after));
}

/** A time in milliseconds since 1970. */
export function time(what: string, value: unknown): number {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms !== "number" || !(ms >= 0 && ms <= DUE_MAX)) {
    throw new DuelineError(
      "due_out_of_range",
      `${what} is a time from 0 to ${DUE_MAX} ms (9999-12-31T23:59:59.999Z), not ${inWords(value)}`,
    );
  }
  return Math.ceil(ms);
}

/** A span in milliseconds. */
export function span(what: string, value: unknown, code: "due_out_of_range" | "invalid" = "due_out_of_range"): number {
  if (typeof value !== "number" || !(value >= 0 && value <= DUE_MAX)) {
    throw new DuelineError(code, `${what} is a span in ms from 0 to ${DUE_MAX}, not ${inWords(value)}`);
  }
  return Math.ceil(value);
}

/** A name, which must be exactly what its UTF-8 says. */
export function nameOf(value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new DuelineError("invalid", `a name is a string of at least one character, not ${inWords(value)}`);
  }
  if (!value.isWellFormed()) {
    throw new DuelineError("invalid", "a name must not hold half of a surrogate pair");
  }
  const bytes = encoder.encode(value).length;
  if (bytes > NAME_BYTES_MAX) {
    throw new DuelineError("invalid", `a name has at most ${NAME_BYTES_MAX} bytes of UTF-8, this one ${bytes}`);
  }
  return value;
}

/**
 * A text that was given out by the engine: a generation, an id, a place to go on. The engine reads it; here it
 * must only be a string, since what is none breaks the call into the module.
 */
export function text(what: string, value: unknown): string {
  if (typeof value !== "string") {
    throw new DuelineError("invalid", `${what} is a string, not ${inWords(value)}`);
  }
  return value;
}

/** As {@link text}; `undefined` stays. */
export function optionalText(what: string, value: unknown): string | undefined {
  return value === undefined ? undefined : text(what, value);
}

/** As {@link whole}; `undefined` stays. */
export function optionalWhole(what: string, value: unknown, least: number, most: number): number | undefined {
  return value === undefined ? undefined : whole(what, value, least, most);
}

/** An integer within bounds. */
export function whole(what: string, value: unknown, least: number, most: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw new DuelineError("invalid", `${what} is a whole number from ${least} to ${most}, not ${inWords(value)}`);
  }
  return value;
}

/** The options that there are, each of them: one that is forgotten here does not compile. */
export type Known<T> = { readonly [K in T extends unknown ? keyof T : never]-?: true };

/** Options, which must be an object before they are looked into. One that there is not is refused: it is misspelt. */
export function optionsOf<T extends object>(what: string, options: T, known: Known<NoInfer<T>>): T {
  for (const name of Object.keys(objectOf(what, options))) {
    if (!Object.hasOwn(known, name)) {
      throw new DuelineError("invalid", `${what}: there is no option \`${name}\`; there are ${Object.keys(known).join(", ")}`);
    }
  }
  return options;
}

/** An object, whatever is in it. */
export function objectOf<T extends object>(what: string, options: T): T {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new DuelineError("invalid", `${what}: an object is wanted, not ${inWords(options)}`);
  }
  return options;
}

/** Whether an object is a plain one, of whatever realm: what one of a class has from its class is not among its names. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A plain object whose names are the application's own. */
export function namesOf<T extends object>(what: string, names: T): T {
  if (isThenable(objectOf(what, names))) {
    throw new DuelineError("invalid", `${what}: an object is wanted, not a promise: the function that makes them must not be async`);
  }
  if (!isPlain(names)) {
    throw new DuelineError("invalid", `${what}: a plain object is wanted, not ${inWords(names)}`);
  }
  return names;
}

/** Whether a function was given. */
export function optionalFunction(what: string, value: unknown): boolean {
  if (value !== undefined && typeof value !== "function") {
    throw new DuelineError("invalid", `${what} is a function, not ${inWords(value)}`);
  }
  return value !== undefined;
}

/** Whether something is waited for. A promise of the platform's RPC is a function: it can be called for what it promises. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  const isOne = (typeof value === "object" && value !== null) || typeof value === "function";
  return isOne && "then" in value && typeof value.then === "function";
}

/** A list of so many. Each place of it has something: a hole would be skipped by every check and reach the engine. */
export function listOf<T>(what: string, list: readonly T[], least: number, most: number): T[] {
  if (!Array.isArray(list) || list.length < least || list.length > most) {
    throw new DuelineError("invalid", `${what} are a list of ${least} to ${most}, not ${inWords(list)}`);
  }
  return Array.from(list as readonly T[]);
}

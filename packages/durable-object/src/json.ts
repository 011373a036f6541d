import { isPlain } from "./checks.js";
import { DuelineError, inWords, textOf } from "./errors.js";

/** Where in a payload something lies: `payload.seats[3].at`. */
type Path = readonly (string | number)[];

/**
 * The JSON text of a payload that comes back as it went in. JSON alone would make a text of a `Date`, an empty object of
 * a `Map`, `null` of `NaN`, and nothing of a function: each is refused, by where it lies.
 */
export function jsonOf(payload: unknown): string {
  let text: string | undefined;
  try {
    // What has no end has no text: it is looked into only behind this.
    text = JSON.stringify(payload);
    if (!isSound(payload)) {
      check(payload, []);
    }
  } catch (cause) {
    throw cause instanceof DuelineError ? cause : withoutJson(payload, cause);
  }
  if (text === undefined) {
    throw refused([], payload, "has no JSON form");
  }
  return text;
}

/** Whether {@link check} has nothing to look for. Most payloads are like that, and small: no path is made for them. */
function isSound(value: unknown): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return value - value === 0;
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) {
    return true;
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      if (!isSound(value[index])) {
        return false;
      }
    }
    return true;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    return false;
  }
  for (const key in value) {
    const item: unknown = (value as Record<string, unknown>)[key];
    if (item !== undefined && !isSound(item)) {
      return false;
    }
  }
  return true;
}

/** Refuses what JSON would lose or make another thing of. */
function check(value: unknown, path: Path): void {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return;
    case "number":
      if (!Number.isFinite(value)) {
        throw refused(path, value, "would come back as null");
      }
      return;
    case "object":
      if (value !== null) {
        checkObject(value, path);
      }
      return;
    default:
      throw refused(path, value, "has no JSON form");
  }
}

function checkObject(value: object, path: Path): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      if (item === undefined) {
        throw refused([...path, index], item, "would come back as null");
      }
      if (typeof item !== "string") {
        check(item, [...path, index]);
      }
    }
    return;
  }
  if (value instanceof Date) {
    throw refused(path, value, "would come back as a text: store its milliseconds, `getTime()`, or that text, `toISOString()`");
  }
  if (typeof (value as { readonly toJSON?: unknown }).toJSON === "function") {
    // It says itself what it is stored as.
    return;
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    throw refused(path, value, "would come back as an object: bytes are a payload of their own, or a text, as base64, within one");
  }
  if (!isPlain(value)) {
    throw refused(path, value, "would come back as another object: store a plain one, or give its class a `toJSON`");
  }
  for (const [key, item] of Object.entries(value)) {
    if (typeof item !== "string") {
      check(item, [...path, key]);
    }
  }
}

/** The error of what `JSON.stringify` refused: by where it lies, if that is a part, and else in JavaScript's words. */
function withoutJson(payload: unknown, cause: unknown): DuelineError {
  return (
    findBigInt(payload, [], new Set()) ??
    new DuelineError("payload_not_serializable", `the payload has no JSON form: ${textOf(cause)}`, { cause })
  );
}

function findBigInt(value: unknown, path: Path, seen: Set<unknown>): DuelineError | undefined {
  if (typeof value === "bigint") {
    return refused(path, value, "has no JSON form: store its text");
  }
  if (typeof value !== "object" || value === null || seen.has(value) || path.length > 100) {
    return undefined;
  }
  seen.add(value);
  try {
    for (const [key, item] of Object.entries(value)) {
      const found = findBigInt(item, [...path, Array.isArray(value) ? Number(key) : key], seen);
      if (found !== undefined) {
        return found;
      }
    }
  } catch {
    // What cannot be read is told in JavaScript's words.
  }
  return undefined;
}

function refused(path: Path, value: unknown, why: string): DuelineError {
  const where = path.map((part) => (typeof part === "number" ? `[${part}]` : /^[A-Za-z_$][\w$]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`));
  return new DuelineError("payload_not_serializable", `payload${where.join("")} is ${shown(value)}, which ${why}`);
}

/** No part of a payload is shown but what kind of thing it is. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "bigint":
    case "symbol":
      return `a ${typeof value}`;
    case "object":
      return value instanceof Date ? "a Date" : inWords(value);
    default:
      return inWords(value);
  }
}

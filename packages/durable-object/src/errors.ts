/** What went wrong, for code. */
export type DuelineErrorCode =
  /** No handler of this object has this name, or no timer ever had. */
  | "unknown_kind"
  /** An argument or an option is out of its range, of the wrong form, or not known; the message says which. */
  | "invalid"
  /** The payload would not come back from JSON as it is (a `Date`, a `Map`, `NaN`, a function, a cycle, a bigint); the message says where. */
  | "payload_not_serializable"
  /** The payload has more bytes, as it is stored, than a timer carries (491,520). */
  | "payload_too_large"
  /** The time is no number, before 1970 or behind 9999-12-31T23:59:59.999Z. */
  | "due_out_of_range"
  /** There is no timer of this name. */
  | "not_found"
  /** `ifMatch` names another generation than the timer has now; see `current`. */
  | "generation_mismatch"
  /** A call of the timer may be under way; see `endsAt`. */
  | "claimed"
  /** Other writers kept changing the timer. Try again. */
  | "contended"
  /** The object's database is full; reads and deletes go on. */
  | "full"
  /** The database or the alarm refused; nothing was written. Try again. */
  | "unavailable"
  /** The write may have happened or not. Read before you go on. */
  | "unknown_outcome"
  /** What is stored does not decode. */
  | "corrupt"
  /** The tables were written by a newer version of this package. */
  | "unsupported"
  /** A function of the application that a verb asks did not answer in time; nothing was written. */
  | "deadline"
  /** A verb was called from within effects, which run inside a transaction. */
  | "in_effects"
  /** Effects were asynchronous; they must be done when they return. */
  | "effects_async"
  /** A handler returned something that is no outcome, or effects returned one; the message says what. */
  | "bad_outcome"
  /** The engine trapped in this call; the object goes on with a new instance of it. */
  | "crashed";

/** Which timer of a call was refused. */
export interface RefusedTimer {
  /** Its place in the list, from 0. */
  readonly index: number;
  readonly kind: string;
  /** Without one the timer is anonymous. */
  readonly name?: string;
}

/**
 * Every error that this package throws. The message begins with the code. Behind an RPC it is no `DuelineError` any more
 * and may have lost its `code`: {@link codeOf} knows it there too.
 */
export class DuelineError extends Error {
  override readonly name = "DuelineError";
  readonly code: DuelineErrorCode;
  /** Of `generation_mismatch`: the generation that the timer has. */
  readonly current: string | undefined;
  /** Of `claimed`: when the claim ends, in milliseconds since 1970. */
  readonly endsAt: number | undefined;
  /** Of `scheduleMany`: the timer for whose sake none was scheduled; `undefined` if it was no single one. */
  readonly refused: RefusedTimer | undefined;

  constructor(
    code: DuelineErrorCode,
    message: string,
    more: {
      readonly cause?: unknown;
      readonly current?: string;
      readonly endsAt?: number;
      readonly refused?: RefusedTimer;
    } = {},
  ) {
    super(`${code}: ${message}`, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.current = more.current;
    this.endsAt = more.endsAt;
    this.refused = more.refused;
  }
}

/** Each code once, for code that runs. */
const CODES: Readonly<Record<DuelineErrorCode, true>> = {
  unknown_kind: true,
  invalid: true,
  payload_not_serializable: true,
  payload_too_large: true,
  due_out_of_range: true,
  not_found: true,
  generation_mismatch: true,
  claimed: true,
  contended: true,
  full: true,
  unavailable: true,
  unknown_outcome: true,
  corrupt: true,
  unsupported: true,
  deadline: true,
  in_effects: true,
  effects_async: true,
  bad_outcome: true,
  crashed: true,
};

/**
 * The code of an error of this package; `undefined` of any other. It may have come over an RPC, which leaves of it what
 * the platform's compatibility date says: all of it, or an `Error` whose message is `DuelineError: not_found: ...`.
 */
export function codeOf(thrown: unknown): DuelineErrorCode | undefined {
  try {
    if (thrown instanceof DuelineError) {
      return thrown.code;
    }
    const { name, message } = thrown as { readonly name?: unknown; readonly message?: unknown };
    const [, prefix, code = ""] = /^(DuelineError: )?(\w+): /.exec(String(message)) ?? [];
    const isOurs = prefix !== undefined || name === "DuelineError";
    return isOurs && Object.hasOwn(CODES, code) ? (code as DuelineErrorCode) : undefined;
  } catch {
    return undefined;
  }
}

/** What the core throws: an `Error` with a code of the list above. */
interface CoreError extends Error {
  readonly duelineCode: DuelineErrorCode;
  readonly current?: string;
  readonly endsAt?: number;
}

/** Whether the core said this itself, and did not break. */
export function isCoreError(thrown: unknown): thrown is CoreError {
  return thrown instanceof Error && "duelineCode" in thrown;
}

/** What SQLite says of a table of the engine's that is not there. */
export const NO_TABLE = /no such table: dueline_/;

/** What SQLite says behind `deleteAll()`, and the platform where a class has lost its `alarm()`: and what is to be done. */
const HINTS: readonly (readonly [said: RegExp, hint: string])[] = [
  [
    NO_TABLE,
    "; the object's tables were taken away, as `deleteAll()` does: the first call that comes while no alarm is served makes them anew",
  ],
  [/must have an alarm\(\) handler/, "; what was written is there, and fires once the class has an `alarm()` again"],
];

/** An error of the core as one of ours. */
export function fromCore(thrown: unknown): unknown {
  if (!isCoreError(thrown)) {
    return thrown;
  }
  const hint = HINTS.find(([said]) => said.test(thrown.message))?.[1] ?? "";
  return new DuelineError(thrown.duelineCode, thrown.message + hint, {
    ...(thrown.current === undefined ? {} : { current: thrown.current }),
    ...(thrown.endsAt === undefined ? {} : { endsAt: thrown.endsAt }),
  });
}

/**
 * The text of anything that was thrown, and nothing but a text: the message of an error may be an object, and to
 * read it may throw.
 */
export function textOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) {
      return String(thrown.message === "" ? thrown.name : thrown.message);
    }
    return typeof thrown === "string" ? thrown : `something that is no Error was thrown: ${inJson(thrown)}`;
  } catch {
    return "something that has no text was thrown";
  }
}

/** What was thrown, as it is known by: `{"code":1}` says more than that it is an object. */
function inJson(thrown: unknown): string {
  try {
    return shortened(JSON.stringify(thrown) ?? inWords(thrown));
  } catch {
    return inWords(thrown);
  }
}

const SHOWN_MAX = 100;

/** A value as a message shows it: its type is told where the text alone would be taken for another. */
export function inWords(value: unknown): string {
  try {
    switch (typeof value) {
      case "string":
        return `the string ${JSON.stringify(shortened(value))}`;
      case "bigint":
        return `the bigint ${shortened(String(value))}`;
      case "function":
        return value.name === "" ? "a function" : `the function \`${shortened(value.name)}\``;
      case "object":
        return value === null ? "null" : objectInWords(value);
      default:
        return String(value);
    }
  } catch {
    return typeof value === "object" ? "an object" : `a ${typeof value}`;
  }
}

function objectInWords(value: object): string {
  if (Array.isArray(value)) {
    return `a list of ${value.length}`;
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? "an invalid Date" : `the Date ${value.toISOString()}`;
  }
  const made: unknown = (value as { readonly constructor?: unknown }).constructor;
  if (typeof made === "function" && made !== Object && made.name !== "") {
    return `an object of the class \`${shortened(made.name)}\``;
  }
  const keys = Object.keys(value);
  return keys.length === 0 ? "an empty object" : `an object with ${shortened(keys.join(", "))}`;
}

/** What stands for a name in a message: a name as it is. */
export function asName(value: unknown): string {
  return typeof value === "string" ? shortened(value) : inWords(value);
}

function shortened(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}

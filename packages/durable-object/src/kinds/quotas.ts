import { namesOf, optionsOf, time, whole, type Known } from "../checks.js";
import { asName, DuelineError } from "../errors.js";
import type { Hook } from "../hooks.js";
import type { BuiltIns } from "./built-ins.js";
import { shortName, Verbs, type Call, type WithEffects } from "./verbs.js";

const NAME_BYTES_MAX = 64;
const COUNTERS_MAX = 4;
const WINDOW_MS_MIN = 1_000;
const WINDOW_MS_MAX = 400 * 24 * 60 * 60 * 1_000;
const CHARGE: Known<{ readonly limits?: unknown } & WithEffects> = { limits: true, effects: true };
const WINDOW: Known<QuotaWindow> = { window: true };

/** A quota of an object. */
export interface QuotaWindow {
  /**
   * How long it counts before it begins at 0 again, in milliseconds: 1,000 to 34,560,000,000 (400 days). Windows
   * begin at multiples of it since 1970. Another length is another quota: it begins at 0.
   */
  readonly window: number;
}

/** The quotas of an object by their names, of 1 to 64 bytes. */
export type QuotaOptions = Readonly<Record<string, QuotaWindow>>;

/** What is used in a window. */
export interface QuotaUsage {
  /** All four counters; those that were never charged are 0. */
  readonly used: readonly number[];
  /** The first millisecond of the window, since 1970. */
  readonly startsAt: number;
  /** The first millisecond behind it, when the next window begins. */
  readonly endsAt: number;
}

/** `charged`, what is used being with it; or `refused`, and nothing was written. */
export type Charge =
  | ({ readonly outcome: "charged" } & QuotaUsage)
  | ({
      readonly outcome: "refused";
      /** The first counter that would be over its limit, from 0. */
      readonly counter: number;
    } & QuotaUsage);

/** A charge as the core shows it. */
type CoreOf<T> = Omit<T, "used"> & { readonly used: Float64Array };

/**
 * Quotas: exact counters of what is used in a window of time, at most four of a quota, which are charged
 * together or not at all.
 *
 * Rows of a window that is over go by themselves, 30 s behind its end.
 */
export class Quotas extends Verbs {
  readonly #wanted: () => BuiltIns;
  #windows: ReadonlyMap<string, number> | undefined;

  /** @internal */
  constructor(call: Call, wanted: () => BuiltIns) {
    super(call, "quotas", () => wanted().quotas !== undefined);
    this.#wanted = wanted;
  }

  /**
   * Charges the present window of a quota with these amounts, a whole number from 0 to 2^53 - 1 for each counter,
   * unless a counter would come to more than its limit. Effects are done if it is charged.
   *
   * `limits` has one for each counter that is charged, `Infinity` being none; without it none has a limit. A
   * counter counts to 2^53 - 1, and refuses what goes beyond.
   */
  async charge(
    name: string,
    amounts: readonly number[],
    options: { readonly limits?: readonly number[] } & WithEffects = {},
  ): Promise<Charge> {
    const window = this.#windowOf(name);
    const counters = countersOf("an amount", amounts);
    const limits = limitsOf(optionsOf("the options", options, CHARGE).limits, amounts.length);
    const done = await this.verb<CoreOf<Charge>>(
      (core, effects) => core.quotaCharge(name, window, counters, limits, effects),
      options.effects,
    );
    return { ...done, used: Array.from(done.used) } as Charge;
  }

  /** What is used in the present window of a quota. */
  async usage(name: string): Promise<QuotaUsage> {
    const window = this.#windowOf(name);
    const found = await this.verb<CoreOf<QuotaUsage>>((core) => core.quotaUsage(name, window));
    return { ...found, used: Array.from(found.used) };
  }

  /**
   * What was used in the window that holds a time, in milliseconds since 1970, the present one without it.
   * `undefined` if nothing was, or if it ended 30 s ago or earlier and its rows are gone.
   */
  async total(name: string, at?: number | Date): Promise<readonly number[] | undefined> {
    const window = this.#windowOf(name);
    const moment = at === undefined ? undefined : time("the time in a window", at);
    const found = await this.verb<Float64Array | undefined>((core) => core.quotaTotal(name, window, moment));
    return found === undefined ? undefined : Array.from(found);
  }

  #windowOf(name: string): number {
    const { quotas } = this.#wanted();
    if (quotas === undefined) {
      // The verb says that there are no quotas at all.
      return 0;
    }
    this.#windows ??= windowsOf(quotas);
    const window = this.#windows.get(name);
    if (window === undefined) {
      throw new DuelineError("unknown_kind", `this object has no quota \`${asName(name)}\`: name it in \`builtIns\``);
    }
    return window;
  }
}

/** Whether there are quotas, as the core reads it. */
export function coreQuotas(quotas: QuotaOptions): { settings: boolean; hooks: Record<string, Hook> } {
  windowsOf(quotas);
  return { settings: true, hooks: {} };
}

function windowsOf(quotas: QuotaOptions): ReadonlyMap<string, number> {
  const windows = Object.entries(namesOf("quotas", quotas)).map(([name, quota]): [string, number] => {
    const given = optionsOf(`the quota \`${name}\``, quota, WINDOW).window;
    const window = whole(`the window of the quota \`${name}\``, given, WINDOW_MS_MIN, WINDOW_MS_MAX);
    return [shortName("the name of a quota", name, NAME_BYTES_MAX), window];
  });
  return new Map(windows);
}

function countersOf(what: string, numbers: unknown): Float64Array {
  if (!Array.isArray(numbers) || numbers.length === 0 || numbers.length > COUNTERS_MAX) {
    throw new DuelineError("invalid", `a quota has 1 to ${COUNTERS_MAX} counters: a list with ${what} for each`);
  }
  return Float64Array.from(numbers, (number: unknown) => whole(what, number, 0, Number.MAX_SAFE_INTEGER));
}


/** The limits of all counters: as far as they count, where there is none. */
function limitsOf(limits: unknown, charged: number): Float64Array {
  const all = new Float64Array(COUNTERS_MAX).fill(Number.MAX_SAFE_INTEGER);
  if (limits !== undefined) {
    if (!Array.isArray(limits) || limits.length < charged || limits.length > COUNTERS_MAX) {
      throw new DuelineError("invalid", "`limits` is a list with a limit for each counter that is charged");
    }
    const known = limits.map((limit: unknown) => (limit === Infinity ? Number.MAX_SAFE_INTEGER : limit));
    all.set(countersOf("a limit", known));
  }
  return all;
}

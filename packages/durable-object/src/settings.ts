import { namesOf, optionalFunction, optionalWhole, optionsOf, span, type Known } from "./checks.js";
import { DuelineError, inWords } from "./errors.js";
import type { HostKind } from "./host.js";
import type { Detached, Inline, KindOptions, Retry } from "./handlers.js";
import type { Logger } from "./log.js";

/** How the timers of an object are run. */
export interface Settings {
  /** Most timers that one tick fires; 128 without it. */
  readonly fired?: number;
  /** Most timers of one kind in a tick; without it an equal share of `fired`, and at least 32. */
  readonly firedPerKind?: number;
  /** Most rows that one tick reads; 512 without it. */
  readonly scanned?: number;
  /** Most time of the ticks of an alarm that is behind, in milliseconds; 30,000 without it. One tick has a second. */
  readonly elapsed?: number;
  /** Most detached calls at a time; 32 without it. */
  readonly calls?: number;
  /**
   * How long an alarm stays with what comes due while calls are under way, in milliseconds; 60,000 without it. Behind
   * it only calls begin whose deadlines come before the last of those under way, and what can run is served once a
   * second, until these have ended.
   */
  readonly stay?: number;
  /** Most bytes of the object's database; puts beyond it are refused as `full`. None without it. */
  readonly databaseBytes?: number;
  /**
   * Who is told of runs that fail, timers that are given up, and alarms. Without it the console, in a line for each
   * that went wrong; `false` for nobody.
   */
  readonly log?: Logger | false;
}

const COUNT_MAX = 0xffff_ffff;
export const SETTINGS: Known<Settings> = {
  fired: true,
  firedPerKind: true,
  scanned: true,
  elapsed: true,
  calls: true,
  stay: true,
  databaseBytes: true,
  log: true,
};

/** Settings as the core reads them. */
export function coreSettings(settings: Settings, isAfterTrap: boolean): object {
  return {
    maxFired: optionalWhole("fired", settings.fired, 1, COUNT_MAX),
    maxPerKind: optionalWhole("firedPerKind", settings.firedPerKind, 1, COUNT_MAX),
    maxScanned: optionalWhole("scanned", settings.scanned, 1, COUNT_MAX),
    maxElapsedMs: optionalSpan("elapsed", settings.elapsed),
    callsMax: optionalWhole("calls", settings.calls, 1, COUNT_MAX),
    stayMs: optionalSpan("stay", settings.stay),
    sizeLimitBytes: optionalWhole("databaseBytes", settings.databaseBytes, 1, Number.MAX_SAFE_INTEGER),
    isAfterTrap,
  };
}

/** A kind whose names an application chooses has so many bytes of UTF-8 at most, and an object has so many of them. */
const KIND_BYTES_MAX = 128;
const KINDS_MAX = 224;
const encoder = new TextEncoder();
const OPTIONS: Known<KindOptions<unknown>> = { retry: true, deadline: true, perTick: true, parse: true, version: true };
const INLINE: Known<Inline<unknown>> = { ...OPTIONS, run: true, group: true, call: true };
const DETACHED: Known<Omit<Detached<unknown>, symbol>> = { ...OPTIONS, run: true, call: true, settle: true, concurrency: true };
const RETRY: Known<Retry> = { attempts: true, initial: true, max: true, jitter: true };

/**
 * The kinds of an object, looked over. Their payloads' types end here: each is decoded for its own handler.
 */
export function hostKinds(handlers: object): HostKind[] {
  const kinds = Object.entries(namesOf("`handlers`", handlers)).map(([name, given]: [string, unknown]) => hostKind(name, given));
  if (kinds.length > KINDS_MAX) {
    throw new DuelineError(
      "invalid",
      `an object has at most ${KINDS_MAX} kinds in its life, not ${kinds.length}: use the payload to tell timers apart`,
    );
  }
  return kinds;
}

function hostKind(name: string, given: unknown): HostKind {
  if (name === "__proto__") {
    throw new DuelineError("invalid", "the kind `__proto__` needs another name: an object has no such member");
  }
  if (name.startsWith("$")) {
    throw new DuelineError("invalid", `the kind \`${name}\` needs another name: those with a \`$\` are the package's`);
  }
  const bytes = encoder.encode(name).length;
  if (bytes === 0 || bytes > KIND_BYTES_MAX || !name.isWellFormed()) {
    throw new DuelineError(
      "invalid",
      `the name of a kind is a well-formed string of 1 to ${KIND_BYTES_MAX} bytes of UTF-8, not ${inWords(name)}`,
    );
  }
  // A handler alone is the shortest form of a kind.
  const kind = (typeof given === "function" ? { run: given } : given) as HostKind["kind"] | null | undefined;
  const handler: unknown = kind?.call ?? kind?.run;
  if (kind === undefined || kind === null || typeof handler !== "function") {
    const found = handler === undefined ? inWords(given) : inWords(handler);
    throw new DuelineError("invalid", `the kind \`${name}\` needs a handler: a function, \`run\`, or \`call\`, not ${found}`);
  }
  return { name, kind };
}

/** A kind's options as the core reads them. What is wrong with one of them says of which kind. */
export function coreKind({ name, kind }: HostKind): object {
  const of = ` of the kind \`${name}\``;
  const isDetached = kind.call !== undefined;
  if (isDetached) {
    optionsOf(`the kind \`${name}\``, kind as Omit<Detached<unknown>, symbol>, DETACHED);
    optionalFunction(`\`settle\`${of}`, kind.settle);
  } else {
    optionsOf(`the kind \`${name}\``, kind, INLINE);
  }
  optionalFunction(`\`parse\`${of}`, kind.parse);
  return {
    name,
    isDetached,
    groupMax: isDetached ? undefined : optionalWhole(`\`group\`${of}`, kind.group, 1, 1024),
    concurrency: isDetached ? optionalWhole(`\`concurrency\`${of}`, kind.concurrency, 1, COUNT_MAX) : undefined,
    deadlineMs: optionalSpan(`\`deadline\`${of}`, kind.deadline),
    perTickMax: optionalWhole(`\`perTick\`${of}`, kind.perTick, 1, COUNT_MAX),
    codecVersion: optionalWhole(`\`version\`${of}`, kind.version, 1, 0xffff),
    ...coreRetry(kind.retry, of),
  };
}

/** Retries as the core reads them. */
export function coreRetry(given: Retry | undefined, of = ""): object {
  const retry = given === undefined ? {} : optionsOf(`\`retry\`${of}`, given, RETRY);
  const attempts = `\`attempts\`${of} (or Infinity)`;
  return {
    attemptsMax: retry.attempts === Infinity ? 0 : optionalWhole(attempts, retry.attempts, 1, 0xffff),
    retryInitialMs: optionalSpan(`\`initial\`${of}`, retry.initial),
    retryMaxMs: optionalSpan(`\`max\`${of}`, retry.max),
    retryJitterPercent: optionalWhole(`\`jitter\`${of}`, retry.jitter, 0, 100),
  };
}

/** A span of an option, in milliseconds; `undefined` stays. */
export function optionalSpan(what: string, value: number | undefined): number | undefined {
  return value === undefined ? undefined : span(what, value, "invalid");
}

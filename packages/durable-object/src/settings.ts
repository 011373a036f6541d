import { optionalWhole, optionsOf, span } from "./checks.js";
import { DuelineError } from "./errors.js";
import type { HostKind } from "./host.js";
import type { Retry } from "./handlers.js";
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

/**
 * The kinds of an object, looked over. Their payloads' types end here: each is decoded for its own handler.
 */
export function hostKinds(handlers: object): HostKind[] {
  return Object.entries(optionsOf("handlers", handlers)).map(([name, given]: [string, unknown]) => {
    if (name.startsWith("$")) {
      throw new DuelineError("invalid", `the kind \`${name}\` needs another name: those with a \`$\` are the package's`);
    }
    // A handler alone is the shortest form of a kind.
    const kind = (typeof given === "function" ? { run: given } : given) as HostKind["kind"];
    const handler: unknown = kind?.call ?? kind?.run;
    if (typeof handler !== "function") {
      throw new DuelineError("invalid", `the kind \`${name}\` needs a handler: a function, \`run\`, or \`call\``);
    }
    return { name, kind };
  });
}

/** A kind's options as the core reads them. */
export function coreKind({ name, kind }: HostKind): object {
  const isDetached = kind.call !== undefined;
  return {
    name,
    isDetached,
    groupMax: isDetached ? undefined : optionalWhole("group", kind.group, 1, 1024),
    concurrency: isDetached ? optionalWhole("concurrency", kind.concurrency, 1, COUNT_MAX) : undefined,
    deadlineMs: optionalSpan("deadline", kind.deadline),
    perTickMax: optionalWhole("perTick", kind.perTick, 1, COUNT_MAX),
    codecVersion: optionalWhole("version", kind.version, 1, 0xffff),
    ...coreRetry(kind.retry ?? {}),
  };
}

/** Retries as the core reads them. */
export function coreRetry(retry: Retry): object {
  return {
    attemptsMax: retry.attempts === Infinity ? 0 : optionalWhole("attempts", retry.attempts, 1, 0xffff),
    retryInitialMs: optionalSpan("initial", retry.initial),
    retryMaxMs: optionalSpan("max", retry.max),
    retryJitterPercent: optionalWhole("jitter", retry.jitter, 0, 100),
  };
}

/** A span in milliseconds; `undefined` stays. */
export function optionalSpan(what: string, value: number | undefined): number | undefined {
  return value === undefined ? undefined : span(what, value);
}

import { optionalFunction, optionsOf, span, time, whole, type Known } from "../checks.js";
import { DuelineError } from "../errors.js";
import type { Hook } from "../hooks.js";
import { checkedEffects } from "../kept-effects.js";
import type { Effects } from "../outcomes.js";
import { decodeName } from "../payload.js";
import { optionalSpan } from "../settings.js";
import type { BuiltIns } from "./built-ins.js";
import { shortName, Verbs, type Call, type WithEffects } from "./verbs.js";

/** A lease that somebody holds. */
export interface Lease {
  readonly name: string;
  readonly owner: string;
  /** Higher than that of every grant of this name before; the same over renewals. */
  readonly epoch: number;
  /** In milliseconds since 1970. It is held until it is swept, which may be later. */
  readonly expiresAt: number;
  /** The highest watermark that {@link LeaseOptions.drain} told of this name. */
  readonly watermark: number;
}

/**
 * What is left of the work of a holder whose time is over. `drained`: nothing, the lease goes. A watermark:
 * something, the lease is kept and this asked again. `missing`: nobody knows; kept, and asked again after a
 * back-off.
 */
export type Drain = "drained" | "missing" | { readonly watermark: number };

/** How leases are swept. */
export interface LeaseOptions {
  /** Asked when a lease has expired. Without it a lease goes as soon as it expires. */
  readonly drain?: (lease: Lease) => Drain | Promise<Drain>;
  /** How long after a watermark it is asked again, in milliseconds; 10,000 without it. */
  readonly recheck?: number;
}

/** `granted`, or `held` by whom. */
export interface Grant {
  readonly outcome: "granted" | "held";
  readonly lease: Lease;
}

/** `renewed`, or `lost`: not held in that epoch any more; `lease` is that of whoever holds it now. */
export type Renewal =
  | { readonly outcome: "renewed"; readonly lease: Lease }
  | { readonly outcome: "lost"; readonly lease?: Lease };

/** `released`, or `lost` before: not held in that epoch any more. */
export interface Release {
  readonly outcome: "released" | "lost";
  /** Whoever holds it now. */
  readonly lease?: Lease;
}

/** How a lease stands. */
export type LeaseState =
  | { readonly outcome: "held"; readonly lease: Lease }
  | { readonly outcome: "vacant"; readonly lastEpoch: number; readonly watermark: number };

/** A lease as the core shows it. */
interface CoreLease extends Omit<Lease, "name" | "owner"> {
  readonly name: Uint8Array;
  readonly owner: Uint8Array;
}

type CoreOf<T> = Omit<T, "lease"> & { readonly lease?: CoreLease };

const LEASES: Known<LeaseOptions> = { drain: true, recheck: true };
const GRANT = { owner: true, term: true, effects: true } as const;
const RENEW = { epoch: true, term: true, effects: true } as const;
const RELEASE = { epoch: true, effects: true } as const;
const FENCED = { epoch: true, until: true } as const;

/**
 * Leases: at most one holder of a name at a time, with an epoch that grows with every grant.
 *
 * A lease is held until it is released, or swept behind its expiry. Writes that a former holder must not do
 * go through {@link Leases.fenced}.
 */
export class Leases extends Verbs {
  /** @internal */
  constructor(call: Call, wanted: () => BuiltIns) {
    super(call, "leases", () => wanted().leases !== undefined);
  }

  /** Asks for a lease for this many milliseconds. Effects are done if it is granted. */
  async grant(
    name: string,
    options: { readonly owner: string; readonly term: number } & WithEffects,
  ): Promise<Grant> {
    const lease = leaseName(name);
    const { owner: by, term: ms, effects: given } = optionsOf("the options", options, GRANT);
    const owner = shortName("the owner of a lease", by);
    const term = span("term", ms);
    const done = await this.verb<CoreOf<Grant>>(
      (core, effects) => core.leaseGrant(lease, owner, term, effects),
      given,
    );
    return shown(done) as Grant;
  }

  /** Holds on for this many milliseconds from now, or as long as before if that is longer. */
  async renew(
    name: string,
    options: { readonly epoch: number; readonly term: number } & WithEffects,
  ): Promise<Renewal> {
    const lease = leaseName(name);
    const epoch = epochOf(options, RENEW);
    const term = span("term", options.term);
    const done = await this.verb<CoreOf<Renewal>>(
      (core, effects) => core.leaseRenew(lease, epoch, term, effects),
      options.effects,
    );
    return shown(done) as Renewal;
  }

  /** Gives a lease back: its work is done, `drain` is not asked. */
  async release(name: string, options: { readonly epoch: number } & WithEffects): Promise<Release> {
    const lease = leaseName(name);
    const epoch = epochOf(options, RELEASE);
    const done = await this.verb<CoreOf<Release>>(
      (core, effects) => core.leaseRelease(lease, epoch, effects),
      options.effects,
    );
    return shown(done) as Release;
  }

  /**
   * Does effects only while the lease is held in this epoch, and with `until` only up to that time: the
   * `expiresAt` of the last renewal. Whether they were done.
   */
  async fenced(
    name: string,
    options: { readonly epoch: number; readonly until?: number | Date },
    effects: Effects,
  ): Promise<boolean> {
    const lease = leaseName(name);
    const epoch = epochOf(options, FENCED);
    const until = options.until === undefined ? undefined : time("until", options.until);
    const fenced = checkedEffects("leases", effects);
    return this.verb<boolean>((core, number) => core.leaseFenced(lease, epoch, until, number ?? 0), fenced);
  }

  /** How a lease stands. */
  async get(name: string): Promise<LeaseState> {
    const lease = leaseName(name);
    return shown(await this.verb<CoreOf<LeaseState>>((core) => core.leaseGet(lease))) as LeaseState;
  }

  /**
   * Forgets the last epoch of a lease that nobody holds: the next grant begins at 1. Only for a name whose
   * former holders are all gone with their writes. `false` if somebody holds it.
   */
  async forget(name: string): Promise<boolean> {
    const lease = leaseName(name);
    return this.verb<boolean>((core) => core.leaseForget(lease));
  }
}

/** Leases' options as the core reads them, and what it asks. */
export function coreLeases(given: LeaseOptions): { settings: object; hooks: Record<string, Hook> } {
  const { drain, recheck } = optionsOf("leases", given, LEASES);
  optionalFunction("`drain`", drain);
  const recheckMs = optionalSpan("recheck", recheck);
  if (drain === undefined) {
    return { settings: { hasDrain: false, recheckMs }, hooks: {} };
  }
  const ask = async (lease: unknown): Promise<string | number> => drained(await drain(leaseOf(lease as CoreLease)));
  return { settings: { hasDrain: true, recheckMs }, hooks: { "lease.drain": ask } };
}

function drained(said: unknown): string | number {
  if (said === "drained" || said === "missing") {
    return said;
  }
  const watermark = (said as { readonly watermark?: unknown } | null | undefined)?.watermark;
  if (watermark === undefined) {
    throw new DuelineError("bad_outcome", "`drain` returns `drained`, `missing` or a watermark");
  }
  return whole("the watermark of a lease", watermark, 0, Number.MAX_SAFE_INTEGER);
}

function leaseName(name: unknown): string {
  return shortName("the name of a lease", name);
}

function epochOf<T extends { readonly epoch: number }>(options: T, known: Known<NoInfer<T>>): number {
  return whole("the epoch of a lease", optionsOf("the options", options, known).epoch, 0, Number.MAX_SAFE_INTEGER);
}

function shown(done: { readonly lease?: CoreLease }): unknown {
  return done.lease === undefined ? done : { ...done, lease: leaseOf(done.lease) };
}

function leaseOf(lease: CoreLease): Lease {
  return { ...lease, name: decodeName(lease.name), owner: decodeName(lease.owner) };
}

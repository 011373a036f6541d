import { namesOf } from "../checks.js";
import { DuelineError } from "../errors.js";
import type { BuiltIn } from "../hooks.js";
import { about } from "./asked.js";
import { coreGated, type GatedOptions } from "./gated.js";
import { coreLeases, type LeaseOptions } from "./leases.js";
import { coreOutboxes, knownOutbox, type Outbox, type Sink } from "./outboxes.js";
import { coreQuotas, type QuotaOptions } from "./quotas.js";
import { coreReservations, type ReservationOptions } from "./reservations.js";
import { coreTickets, type TicketOptions } from "./ticket-options.js";
import { toldWith } from "./together.js";

/** The built-in kinds of an object; each is there if it is named. `{}` is one with its defaults. */
export interface BuiltIns {
  /** At most one holder of a name at a time. */
  readonly leases?: LeaseOptions;
  /** What is held for a while: committed in time, aborted, or abandoned at its deadline. */
  readonly reservations?: ReservationOptions;
  /** Exact counters of what is used in a window of time, by the names of the quotas. */
  readonly quotas?: QuotaOptions;
  /** Outcomes that commit with your writes and are then delivered, in order: a sink for each outbox's name. */
  readonly outboxes?: { readonly [name: string]: Sink | Outbox };
  /** Records that are released once everything they depend on is visible. */
  readonly gated?: GatedOptions;
  /** Holds on a resource with counted limits, that end once. */
  readonly tickets?: TicketOptions;
}

/** The names of the built-in kinds in lists, counts, pauses and dead letters. */
export type BuiltInKind =
  | "$lease_sweep"
  | "$ticket_expiry"
  | "$quota_rollup"
  | "$outcome_delivery"
  | "$reservation_reconcile"
  | "$publication_recheck";

/** The numbers of the built-in kinds, by the names under which they are counted and paused. */
export const BUILT_IN_KINDS: Readonly<Record<BuiltInKind, number>> = {
  $lease_sweep: 1,
  $ticket_expiry: 2,
  $quota_rollup: 5,
  $outcome_delivery: 8,
  $reservation_reconcile: 9,
  $publication_recheck: 12,
};

/** Whose timers each of them fires. */
const FIRED: Readonly<Record<keyof BuiltIns, BuiltInKind>> = {
  leases: "$lease_sweep",
  tickets: "$ticket_expiry",
  outboxes: "$outcome_delivery",
  gated: "$publication_recheck",
  reservations: "$reservation_reconcile",
  quotas: "$quota_rollup",
};

/** A kind's options as the core reads them, and what it asks. */
interface CoreKind {
  readonly settings: unknown;
  readonly hooks: BuiltIn["hooks"];
  readonly deadlines?: BuiltIn["deadlines"];
}

/** Built-in kinds as the core reads them, and what they ask. */
export function coreBuiltIns(wanted: BuiltIns): BuiltIn {
  const unknown = Object.keys(namesOf("`builtIns`", wanted)).find((name) => !Object.hasOwn(FIRED, name));
  if (unknown !== undefined) {
    throw new DuelineError("invalid", `there is no built-in kind \`${unknown}\`; there are ${Object.keys(FIRED).join(", ")}`);
  }
  const settings: Record<string, unknown> = {};
  const hooks: BuiltIn["hooks"] = {};
  const deadlines: Record<string, number> = {};
  const add = <O>(name: string, options: O | undefined, core: (options: O) => CoreKind): void => {
    if (options !== undefined) {
      const { settings: read, hooks: asked, deadlines: within = {} } = core(options);
      settings[name] = read;
      Object.assign(hooks, asked);
      Object.assign(deadlines, within);
    }
  };
  add("leases", wanted.leases, coreLeases);
  add("reservations", wanted.reservations, coreReservations);
  add("hasQuotas", wanted.quotas, coreQuotas);
  add("outboxes", wanted.outboxes, coreOutboxes);
  add("gated", wanted.gated, coreGated);
  add("tickets", wanted.tickets, coreTickets);
  if (wanted.tickets?.outbox !== undefined) {
    knownOutbox(wanted.tickets.outbox, wanted);
  }
  const fired = Object.entries(FIRED).flatMap(([name, kind]) => {
    return wanted[name as keyof BuiltIns] === undefined ? [] : [BUILT_IN_KINDS[kind]];
  });
  const together = (of: object): object => toldWith(of, wanted);
  return { settings, hooks, deadlines, kinds: BUILT_IN_KINDS, handled: new Set(fired), about, together };
}

import type { BuiltIn } from "../host.js";
import { coreLeases, type LeaseOptions } from "./leases.js";
import { coreQuotas, type QuotaOptions } from "./quotas.js";
import { coreReservations, type ReservationOptions } from "./reservations.js";

/** The built-in kinds of an object; each is there if it is named. `{}` is one with its defaults. */
export interface BuiltIns {
  /** At most one holder of a name at a time. */
  readonly leases?: LeaseOptions;
  /** What is held for a while: committed in time, aborted, or abandoned at its deadline. */
  readonly reservations?: ReservationOptions;
  /** Exact counters of what is used in a window of time, by the names of the quotas. */
  readonly quotas?: QuotaOptions;
}

/** The numbers of the built-in kinds, by the names under which they are counted and paused. */
export const BUILT_IN_KINDS: Readonly<Record<string, number>> = {
  $lease_sweep: 1,
  $quota_rollup: 5,
  $reservation_reconcile: 9,
};

/** Built-in kinds as the core reads them, and what they ask. */
export function coreBuiltIns(wanted: BuiltIns): BuiltIn {
  const settings: Record<string, unknown> = {};
  const hooks: BuiltIn["hooks"] = {};
  const add = (name: string, core: { settings: unknown; hooks: BuiltIn["hooks"] } | undefined): void => {
    if (core !== undefined) {
      settings[name] = core.settings;
      Object.assign(hooks, core.hooks);
    }
  };
  add("leases", wanted.leases && coreLeases(wanted.leases));
  add("reservations", wanted.reservations && coreReservations(wanted.reservations));
  add("hasQuotas", wanted.quotas && coreQuotas(wanted.quotas));
  return { settings, hooks, kinds: BUILT_IN_KINDS };
}

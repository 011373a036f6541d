import type { BuiltIn } from "../host.js";
import { coreLeases, type LeaseOptions } from "./leases.js";
import { coreTickets, type TicketOptions } from "./ticket-options.js";

/** The built-in kinds of an object; each is there if it is named. `{}` is one with its defaults. */
export interface BuiltIns {
  /** At most one holder of a name at a time. */
  readonly leases?: LeaseOptions;
  /** Holds on a resource with counted limits, that end once. */
  readonly tickets?: TicketOptions;
}

/** The numbers of the built-in kinds, by the names under which they are counted and paused. */
export const BUILT_IN_KINDS: Readonly<Record<string, number>> = {
  $lease_sweep: 1,
  $ticket_expiry: 2,
};

/** Whose timers each of them fires. */
const FIRED: Readonly<Record<keyof BuiltIns, string>> = {
  leases: "$lease_sweep",
  tickets: "$ticket_expiry",
};

/** Built-in kinds as the core reads them, and what they ask. */
export function coreBuiltIns(wanted: BuiltIns): BuiltIn {
  const settings: Record<string, object> = {};
  const hooks: BuiltIn["hooks"] = {};
  const add = (name: string, core: { settings: object; hooks: BuiltIn["hooks"] } | undefined): void => {
    if (core !== undefined) {
      settings[name] = core.settings;
      Object.assign(hooks, core.hooks);
    }
  };
  add("leases", wanted.leases && coreLeases(wanted.leases));
  add("tickets", wanted.tickets && coreTickets(wanted.tickets));
  const fired = Object.entries(FIRED).flatMap(([name, kind]) => {
    const number = BUILT_IN_KINDS[kind];
    return wanted[name as keyof BuiltIns] === undefined || number === undefined ? [] : [number];
  });
  return { settings, hooks, kinds: BUILT_IN_KINDS, handled: new Set(fired) };
}

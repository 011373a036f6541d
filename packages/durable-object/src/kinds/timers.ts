import { BaseTimers, type TimersOptions as BaseOptions } from "../base-timers.js";
import type { Payloads } from "../types.js";
import { coreBuiltIns, type BuiltInKind, type BuiltIns } from "./built-ins.js";
import { engine } from "./engine.js";
import { Gated } from "./gated.js";
import { Leases } from "./leases.js";
import { Outboxes } from "./outboxes.js";
import { Quotas } from "./quotas.js";
import { Reservations } from "./reservations.js";
import { Tickets } from "./tickets.js";

/** What the timers of an object are made of, with the built-in kinds that it has. */
export interface TimersOptions<P extends Payloads> extends BaseOptions<P> {
  /** The built-in kinds; a function is asked behind the object's constructor, and names the same ones. */
  readonly builtIns?: BuiltIns;
}

/** As `Timers` of the package's main entry, with the built-in kinds beside one's own. */
export class Timers<P extends Payloads = Payloads> extends BaseTimers<P, BuiltInKind> {
  readonly leases: Leases;
  readonly reservations: Reservations;
  readonly quotas: Quotas;
  readonly outboxes: Outboxes;
  readonly gated: Gated;
  readonly tickets: Tickets;

  constructor(ctx: DurableObjectState, options: TimersOptions<P>) {
    const wanted = options.builtIns ?? {};
    super(ctx, options, engine, coreBuiltIns(wanted));
    this.leases = new Leases(this.call, wanted.leases !== undefined);
    this.reservations = new Reservations(this.call, wanted.reservations !== undefined, wanted.outboxes);
    this.quotas = new Quotas(this.call, wanted.quotas);
    this.gated = new Gated(this.call, wanted.gated !== undefined);
    this.outboxes = new Outboxes(this.call, wanted.outboxes);
    this.tickets = new Tickets(this.call, wanted.tickets);
  }
}

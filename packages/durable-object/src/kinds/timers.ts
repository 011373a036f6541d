import { BaseTimers, type TimersOptions as BaseOptions } from "../base-timers.js";
import { objectOf } from "../checks.js";
import type { JsonPayloads, Payloads } from "../types.js";
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
  /** The built-in kinds; a function is asked once, behind the object's constructor or by the first verb of them. */
  readonly builtIns?: BuiltIns | (() => BuiltIns);
}

/** As `Timers` of the package's main entry, with the built-in kinds beside one's own. */
export class Timers<P extends Payloads & JsonPayloads<P> = Payloads> extends BaseTimers<P, BuiltInKind> {
  readonly leases: Leases;
  readonly reservations: Reservations;
  readonly quotas: Quotas;
  readonly outboxes: Outboxes;
  readonly gated: Gated;
  readonly tickets: Tickets;

  constructor(ctx: DurableObjectState, options: TimersOptions<P>) {
    const { builtIns = {}, ...own } = objectOf("the options of the timers", options);
    const isAsked = typeof builtIns === "function";
    const wanted = isAsked ? once(builtIns) : (): BuiltIns => builtIns;
    const core = once(() => coreBuiltIns(wanted()));
    if (!isAsked) {
      // What is wrong with them is the constructor's error.
      core();
    }
    super(ctx, own, engine, core);
    this.leases = new Leases(this.call, wanted);
    this.reservations = new Reservations(this.call, wanted);
    this.quotas = new Quotas(this.call, wanted);
    this.gated = new Gated(this.call, wanted);
    this.outboxes = new Outboxes(this.call, wanted);
    this.tickets = new Tickets(this.call, wanted);
  }
}

/** What a function returns, asked once. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

import { optionalWhole, optionsOf, span, text, type Known } from "../checks.js";
import { DuelineError } from "../errors.js";
import type { ObjectCore } from "../generated/dueline_object_kinds.js";
import { encodePayload } from "../payload.js";
import type { Page } from "../types.js";
import type { BuiltIns } from "./built-ins.js";
import type { TicketOptions } from "./ticket-options.js";
import {
  ticketOf,
  withTicket,
  type CoreOf,
  type CoreTicket,
  type Ticket,
  type TicketChange,
  type TicketDiscarded,
  type TicketOpening,
  type TicketPage,
  type TicketSetAside,
} from "./ticket.js";
import { effectsOf, shortName, Verbs, type Call, type WithEffects } from "./verbs.js";

/** What is to be held, by whom, for how long. */
export interface TicketRequest extends WithEffects {
  /** What is held, 1 to 256 bytes of UTF-8. */
  readonly resource: string;
  /** How long, in milliseconds: at least 1, less than {@link TicketOptions.ttlMax}. */
  readonly ttl: number;
  /** Who holds it, 1 to 256 bytes: counted, and limited by `actorMax`. */
  readonly actor?: string;
  /** An idempotency key, 1 to 256 bytes: under it the same request gets the same ticket while that is open. */
  readonly key?: string;
  /**
   * An external session that {@link TicketOptions.abort} aborts if the ticket ends unused, 1 to 1,024 bytes. A
   * second request under the key gets the ticket with the session that it has.
   */
  readonly session?: string;
  /** Yours: JSON, bytes, or nothing; at most 16,384 bytes as it is stored. */
  readonly data?: unknown;
  /** Refuses the ticket if this many of the resource are open. */
  readonly resourceMax?: number;
  /** Refuses the ticket if this many of the actor are open. */
  readonly actorMax?: number;
}

/** What is counted: the tickets of a resource, or those of an actor. */
export type TicketsOf =
  | { readonly resource: string; readonly actor?: never }
  | { readonly actor: string; readonly resource?: never };

/** Where a page begins: behind the one that had this `next`. At most `limit` items, 1 to 1,000; 100 without it. */
export interface TicketPlace {
  readonly after?: string;
  readonly limit?: number;
}

const DATA_BYTES_MAX = 16 * 1024;
const SESSION_BYTES_MAX = 1024;
const REQUEST: Known<TicketRequest> = {
  resource: true,
  ttl: true,
  actor: true,
  key: true,
  session: true,
  data: true,
  resourceMax: true,
  actorMax: true,
  effects: true,
};
const PLACE: Known<TicketPlace> = { after: true, limit: true };
const COUNTED: Known<TicketsOf> = { resource: true, actor: true };

/**
 * Tickets: holds on a resource with counted limits and an idempotency key, that end once: used, given back, or
 * expired.
 *
 * Using, giving back, extending and cancelling work until the ticket's time is over; then the alarm closes it.
 * Until that has come, a ticket counts.
 */
export class Tickets extends Verbs {
  readonly #wanted: () => BuiltIns;

  /** @internal */
  constructor(call: Call, wanted: () => BuiltIns) {
    super(call, "tickets", () => wanted().tickets !== undefined);
    this.#wanted = wanted;
  }

  /** Opens a ticket. Effects are done if it is a new one. */
  async open(request: TicketRequest): Promise<TicketOpening> {
    const { resource, ttl, actor, key, session, data, effects, ...limits } = optionsOf("the request", request, REQUEST);
    const of = shortName("the resource of a ticket", resource);
    const ms = span("ttl", ttl);
    const by = optionalName("the actor of a ticket", actor);
    const under = optionalName("the key of a ticket", key);
    const goesWith = optionalName("the session of a ticket", session, SESSION_BYTES_MAX);
    const bytes = encodePayload(data, "the data of a ticket", DATA_BYTES_MAX);
    const resourceMax = optionalWhole("resourceMax", limits.resourceMax, 0, Number.MAX_SAFE_INTEGER);
    const actorMax = optionalWhole("actorMax", limits.actorMax, 0, Number.MAX_SAFE_INTEGER);
    if (actorMax !== undefined && by === undefined) {
      throw new DuelineError("invalid", "`actorMax` is for a ticket with an actor");
    }
    const opened = await this.verb<CoreOf<TicketOpening>>(
      (core, number) => core.ticketOpen(of, ms, bytes, by, under, goesWith, resourceMax, actorMax, number),
      effects,
    );
    return withTicket<TicketOpening>(opened);
  }

  /** Ends a ticket by using it: what was held is the holder's. */
  async consume(id: string, options: WithEffects = {}): Promise<TicketChange> {
    return this.#change(id, options, (core, of, number) => core.ticketConsume(of, number), this.#asksOnClose());
  }

  /** Ends a ticket by giving it back: what was held is free at once. Its session is yours to abort. */
  async release(id: string, options: WithEffects = {}): Promise<TicketChange> {
    return this.#change(id, options, (core, of, number) => core.ticketRelease(of, number), this.#asksOnClose());
  }

  /** Ends a ticket as if its time were over: the alarm aborts its session and closes it, at once. */
  async cancel(id: string, options: WithEffects = {}): Promise<TicketChange> {
    return this.#change(id, options, (core, of, number) => core.ticketCancel(of, number));
  }

  /** Holds a ticket for at least this many milliseconds from now; never shortens it. */
  async extend(id: string, ttl: number, options: WithEffects = {}): Promise<TicketChange> {
    const ms = span("ttl", ttl);
    return this.#change(id, options, (core, of, number) => core.ticketExtend(of, ms, number));
  }

  /** The ticket of an id, while it is open. */
  async get(id: string): Promise<Ticket | undefined> {
    const of = idOf(id);
    return optionalTicket(await this.verb<CoreTicket | undefined>((core) => core.ticketGet(of)));
  }

  /** The open ticket of an idempotency key. */
  async find(key: string): Promise<Ticket | undefined> {
    const under = shortName("the key of a ticket", key);
    return optionalTicket(await this.verb<CoreTicket | undefined>((core) => core.ticketFind(under)));
  }

  /** How many tickets of a resource or of an actor are open. */
  async openCount(of: TicketsOf): Promise<number> {
    const { name, isActor } = counted(of);
    return this.verb<number>((core) => core.ticketOpenCount(name, isActor));
  }

  /** One page of the open tickets, in the order of their ids. */
  async list(place: TicketPlace = {}): Promise<TicketPage> {
    const { after, limit } = placeOf(place);
    const page = await this.verb<
      Omit<TicketPage, "items"> & { readonly tickets: readonly CoreTicket[] }
    >((core) => core.ticketList(after, limit));
    const { tickets, ...more } = page;
    return { items: tickets.map(ticketOf), ...more };
  }

  /** One page of the tickets that could not be closed. Each is tried again every minute. */
  async setAside(place: TicketPlace = {}): Promise<Page<TicketSetAside>> {
    const { after, limit } = placeOf(place);
    const page = await this.verb<{ readonly tickets: readonly TicketSetAside[]; readonly next?: string }>((core) =>
      core.ticketSetAside(after, limit),
    );
    const { tickets, ...more } = page;
    return { items: tickets, ...more };
  }

  /** Tries a ticket that is set aside again at once, for after a repair. Whether there was such a ticket. */
  async retry(id: string): Promise<boolean> {
    const of = idOf(id);
    return this.verb<boolean>((core) => core.ticketRetry(of));
  }

  /**
   * Gives up a ticket that is set aside: it goes with its key, and as far as they decode it is counted out of its
   * counters; {@link Tickets.recount} those that do not. No hook is asked. `undefined` if no such ticket is set
   * aside.
   */
  async discard(id: string, options: WithEffects = {}): Promise<TicketDiscarded | undefined> {
    const of = idOf(id);
    const effects = effectsOf(options);
    const discarded = await this.verb<CoreOf<TicketDiscarded> | undefined>(
      (core, number) => core.ticketDiscard(of, number),
      effects,
    );
    return discarded === undefined ? undefined : withTicket<TicketDiscarded>(discarded);
  }

  /**
   * Counts the open tickets of a resource or of an actor anew, for a counter that does not decode. Reads every
   * open ticket. How many there are.
   */
  async recount(of: TicketsOf): Promise<number> {
    const { name, isActor } = counted(of);
    return this.verb<number>((core) => core.ticketRecount(name, isActor));
  }

  #asksOnClose(): boolean {
    return this.#wanted().tickets?.onClose !== undefined;
  }

  async #change(
    id: string,
    options: WithEffects,
    change: (core: ObjectCore, id: string, effects: number | undefined) => Promise<unknown>,
    asksHooks = false,
  ): Promise<TicketChange> {
    const of = idOf(id);
    const effects = effectsOf(options);
    const changed = await this.verb<CoreOf<TicketChange>>(
      (core, number) => change(core, of, number),
      effects,
      asksHooks,
    );
    return withTicket<TicketChange>(changed);
  }
}

function idOf(id: unknown): string {
  return text("the id of a ticket", id);
}

function optionalName(what: string, value: unknown, bytesMax?: number): string | undefined {
  return value === undefined ? undefined : shortName(what, value, bytesMax);
}

function optionalTicket(found: CoreTicket | undefined): Ticket | undefined {
  return found === undefined ? undefined : ticketOf(found);
}

function placeOf(place: TicketPlace): { after: string | undefined; limit: number } {
  const { after, limit } = optionsOf("the options", place, PLACE);
  return {
    after: after === undefined ? undefined : text("`after`", after),
    limit: optionalWhole("limit", limit, 1, 1000) ?? 100,
  };
}

function counted(of: TicketsOf): { name: string; isActor: boolean } {
  const { resource, actor } = optionsOf("what is counted", of, COUNTED);
  if ((resource === undefined) === (actor === undefined)) {
    throw new DuelineError("invalid", "what is counted is a `resource` or an `actor`");
  }
  return resource === undefined
    ? { name: shortName("the actor of a ticket", actor), isActor: true }
    : { name: shortName("the resource of a ticket", resource), isActor: false };
}

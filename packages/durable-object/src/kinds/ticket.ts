import { decodeName, shownPayload } from "../payload.js";

/** A hold of one unit of a resource until its time is over. */
export interface Ticket {
  /** 32 hexadecimal digits, half of them random. */
  readonly id: string;
  /** What is held. */
  readonly resource: string;
  /** Who holds it, if the request said so. */
  readonly actor?: string;
  /** The idempotency key that it was opened under. */
  readonly key?: string;
  /** The external session that goes with it. */
  readonly session?: string;
  /** Yours; `undefined` if there is none. */
  readonly data: unknown;
  /** In milliseconds since 1970. */
  readonly openedAt: number;
  /** From when on it can no longer be used, in milliseconds since 1970. */
  readonly expiresAt: number;
  /** Whether it was cancelled, and waits for the alarm to close it. */
  readonly isCancelled: boolean;
}

/** How a ticket ended. A ticket ends once. */
export type TicketEnd = "consumed" | "released" | "cancelled" | "expired";

/** What became of a request for a ticket. */
export type TicketOpening =
  | { readonly outcome: "new"; readonly ticket: Ticket }
  /** The ticket that the same request was given before, under the same key. */
  | { readonly outcome: "existing"; readonly ticket: Ticket }
  | TicketRefusal;

/** Why there is no ticket. Nothing was written. */
export type TicketRefusal =
  /** As many tickets of the resource are open as the request allows, or more. */
  | { readonly outcome: "refused"; readonly reason: "resource_full"; readonly open: number; readonly openMax: number }
  /** As many tickets of the actor are open as the request allows, or more. */
  | { readonly outcome: "refused"; readonly reason: "actor_full"; readonly open: number; readonly openMax: number }
  /** The key belongs to this ticket, which another request opened. */
  | { readonly outcome: "refused"; readonly reason: "key_taken"; readonly id: string }
  /** The key belongs to this ticket, whose time is over or which was cancelled. It is free when that is closed. */
  | { readonly outcome: "refused"; readonly reason: "key_closing"; readonly id: string };

/** What became of a ticket that was to be changed. */
export type TicketChange =
  /** As it is now, or was when it ended. */
  | { readonly outcome: "done"; readonly ticket: Ticket }
  /** Its time is over, or it was cancelled: the alarm is about to close it. */
  | { readonly outcome: "expired"; readonly ticket: Ticket }
  /** It has ended, or never was. */
  | { readonly outcome: "gone" };

/** Tickets in the order of their ids. */
export interface TicketPage {
  readonly items: readonly Ticket[];
  /** The ids of those whose rows do not decode. */
  readonly unreadable: readonly string[];
  /** Where to go on. */
  readonly next?: string;
}

/** A ticket that could not be closed, because a row of it, a counter or the outbox does not decode. */
export interface TicketSetAside {
  readonly id: string;
  /** In milliseconds since 1970. */
  readonly since: number;
  /** When it is tried again by itself, in milliseconds since 1970. */
  readonly nextTryAt: number;
  readonly tries: number;
  /** What does not decode. */
  readonly reason: string;
}

/** What a ticket that was given up left. */
export interface TicketDiscarded {
  /** The ticket, if it decoded. */
  readonly ticket?: Ticket;
  /** Its row as it was found. */
  readonly row: Uint8Array;
}

/** A ticket as the core shows it. */
export interface CoreTicket extends Omit<Ticket, Named | "data"> {
  readonly resource: Uint8Array;
  readonly actor?: Uint8Array;
  readonly key?: Uint8Array;
  readonly session?: Uint8Array;
  readonly data: Uint8Array;
}

type Named = "resource" | "actor" | "key" | "session";

/** Something with a ticket in it, as the core shows it. */
export type CoreOf<T> = Omit<T, "ticket"> & { readonly ticket?: CoreTicket };

/** The same with the ticket as it is shown. */
export function withTicket<T>(shown: CoreOf<T>): T {
  return (shown.ticket === undefined ? shown : { ...shown, ticket: ticketOf(shown.ticket) }) as T;
}

/** A ticket of the core's. */
export function ticketOf({ resource, actor, key, session, data, ...ticket }: CoreTicket): Ticket {
  return {
    ...ticket,
    resource: decodeName(resource),
    ...(actor === undefined ? {} : { actor: decodeName(actor) }),
    ...(key === undefined ? {} : { key: decodeName(key) }),
    ...(session === undefined ? {} : { session: decodeName(session) }),
    data: shownPayload(data),
  };
}

import { isThenable, optionalFunction, optionalWhole, optionsOf, type Known } from "../checks.js";
import { DuelineError } from "../errors.js";
import type { Signalled } from "../handlers.js";
import type { BuiltIn, Hook } from "../hooks.js";
import type { Effects } from "../outcomes.js";
import { withSignal } from "../running.js";
import { optionalSpan } from "../settings.js";
import { ticketOf, type CoreTicket, type Ticket, type TicketEnd } from "./ticket.js";

/** What may be worth counting. It may be told more than once for one event. */
export type TicketEvent =
  /** An external session could not be aborted; the ticket is closed nevertheless. */
  | { readonly what: "abort_failed"; readonly id: string; readonly error: string }
  /** A ticket could not be closed: see {@link Tickets.setAside}. */
  | { readonly what: "set_aside"; readonly id: string; readonly reason: string; readonly tries: number };

/** How tickets are held, and what is asked when they end. */
export interface TicketOptions {
  /**
   * Effects that commit with the end of each ticket, whatever end it is. If it throws, or its effects do, the
   * ticket stays as it is: a verb throws the same, the alarm tries again, for ever, later and later. So it is if it
   * does not answer in time: see {@link TicketOptions.deadline}. It may be asked more than once for one end: keep to reading. It is not asked for a
   * ticket that is discarded.
   */
  readonly onClose?: (ticket: Ticket, end: TicketEnd) => Effects | void | Promise<Effects | void>;
  /**
   * How long an `onClose` may take, in milliseconds; 30,000 without it. Behind it the verb that asks throws `deadline`.
   * An alarm, in which others wait, never waits for longer than 5,000 ms.
   */
  readonly deadline?: number;
  /**
   * Aborts the external session of a ticket that expires or is cancelled, before that is closed. It is called at
   * least once, and again after a crash: make it idempotent. Whatever comes of it, the ticket is closed. `signal` is
   * aborted when nobody waits for it any more.
   */
  readonly abort?: (ticket: Ticket & { readonly session: string } & Signalled) => unknown;
  /** A ticket is held for less than this at a time, in milliseconds; 604,800,000 (seven days) without it. */
  readonly ttlMax?: number;
  /** How many tickets a tick closes at most if there is an `abort`; 8 without it. */
  readonly callsPerTick?: number;
  /** How long an `abort` may take, in milliseconds; 5,000 without it. */
  readonly abortTimeout?: number;
  /** Hears of what may be worth counting. Nobody waits for it. */
  readonly onEvent?: (event: TicketEvent) => void;
  /** One of the object's outboxes, which is told of the end of each ticket in the commit of that. */
  readonly outbox?: string;
}

const COUNT_MAX = 0xffff_ffff;
const TICKETS: Known<TicketOptions> = {
  onClose: true,
  deadline: true,
  abort: true,
  ttlMax: true,
  callsPerTick: true,
  abortTimeout: true,
  onEvent: true,
  outbox: true,
};

/** Tickets' options as the core reads them, and what it asks. */
export function coreTickets(given: TicketOptions): Pick<BuiltIn, "hooks" | "deadlines"> & { settings: object } {
  const { onClose, abort, ttlMax, callsPerTick, abortTimeout, onEvent, outbox, ...more } = optionsOf("tickets", given, TICKETS);
  const deadline = atLeast("deadline", 1, more.deadline);
  const settings = {
    hasOnClose: optionalFunction("`onClose`", onClose),
    hasAbort: optionalFunction("`abort`", abort),
    hasOnEvent: optionalFunction("`onEvent`", onEvent),
    ttlMaxMs: atLeast("ttlMax", 2, ttlMax),
    callsPerTick: optionalWhole("callsPerTick", callsPerTick, 1, COUNT_MAX),
    abortMs: atLeast("abortTimeout", 1, abortTimeout),
    outbox,
  };
  return {
    settings,
    deadlines: deadline === undefined ? {} : { "ticket.close": deadline },
    hooks: {
      ...(onClose === undefined ? {} : { "ticket.close": closing(onClose) }),
      ...(abort === undefined ? {} : { "ticket.abort": aborting(abort) }),
      ...(onEvent === undefined ? {} : { "ticket.event": telling(onEvent) }),
    },
  };
}

function closing(onClose: NonNullable<TicketOptions["onClose"]>): Hook {
  return (closed, keep) => {
    const { ticket, end } = closed as { readonly ticket: CoreTicket; readonly end: TicketEnd };
    const effects = onClose(ticketOf(ticket), end);
    return isThenable(effects) ? Promise.resolve(effects).then(keep) : keep(effects);
  };
}

function aborting(abort: NonNullable<TicketOptions["abort"]>): Hook {
  return (ticket, _, running) =>
    abort(withSignal({ ...(ticketOf(ticket as CoreTicket) as Ticket & { readonly session: string }) }, running));
}

function telling(onEvent: NonNullable<TicketOptions["onEvent"]>): Hook {
  return async (event, _keep, _running, failed) => {
    try {
      await (onEvent(event as TicketEvent) as unknown);
    } catch (thrown) {
      failed(thrown);
    }
  };
}

function atLeast(what: string, least: number, value: number | undefined): number | undefined {
  const ms = optionalSpan(what, value);
  if (ms !== undefined && ms < least) {
    throw new DuelineError("invalid", `${what} is at least ${least} ms, not ${ms}`);
  }
  return ms;
}

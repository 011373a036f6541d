/**
 * The same package with the engine's built-in kinds: leases, tickets, reservations, quotas, outboxes and gated
 * records, beside timers of one's own.
 *
 * It has a WebAssembly module of its own, which is larger. Import from here or from the main entry, not from both.
 *
 * @module
 */
export * from "../common.js";
export type { BuiltInKind, BuiltIns } from "./built-ins.js";
export type { Dependency, Gated, GatedOptions, Look } from "./gated.js";
export type { Drain, Grant, Lease, LeaseOptions, Leases, LeaseState, Release, Renewal } from "./leases.js";
export type { Charge, QuotaOptions, Quotas, QuotaUsage, QuotaWindow } from "./quotas.js";
export type {
  Forgetting,
  Reservation,
  ReservationOptions,
  Reservations,
  ReservationTerms,
  Reserving,
  Settlement,
} from "./reservations.js";
export {
  outbox,
  SinkError,
  type DeadOutcome,
  type Delivery,
  type Outbox,
  type Outboxes,
  type OutboxPage,
  type OutgoingOutcome,
  type Sink,
  type SinkFault,
  type WaitingOutcome,
} from "./outboxes.js";
export type { TicketEvent, TicketOptions } from "./ticket-options.js";
export type {
  Ticket,
  TicketChange,
  TicketDiscarded,
  TicketEnd,
  TicketOpening,
  TicketPage,
  TicketRefusal,
  TicketSetAside,
} from "./ticket.js";
export type { TicketPlace, TicketRequest, Tickets, TicketsOf } from "./tickets.js";
export { dead, done, reschedule, type Together, type ToldOutcome } from "./together.js";
export { TimerObject } from "./timer-object.js";
export { Timers, type TimersOptions } from "./timers.js";
export type { WithEffects } from "./verbs.js";

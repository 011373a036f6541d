import { optionalFunction, optionsOf, span, text, type Known } from "../checks.js";
import { DuelineError } from "../errors.js";
import type { Hook } from "../hooks.js";
import type { Effects } from "../outcomes.js";
import { decodeName, decodePayload, encodePayload } from "../payload.js";
import type { BuiltIns } from "./built-ins.js";
import { knownOutbox } from "./outboxes.js";
import { shortName, shortText, Verbs, type Call, type WithEffects } from "./verbs.js";

const ID_BYTES_MAX = 96;
const DETAIL_BYTES_MAX = 32 * 1024;
const REASON_BYTES_MAX = 255;

/** A reservation, as it stands. */
export interface Reservation {
  readonly id: string;
  /** Tells it from earlier ones of the same id: whoever settles it names both. */
  readonly serial: string;
  /** `pending`: it waits to be settled. Else how it ended, for good. */
  readonly state: "pending" | "committed" | "aborted" | "abandoned";
  /** Of an abort. */
  readonly reason?: string;
  /** In milliseconds since 1970, as all its times. */
  readonly reservedAt: number;
  /** The latest commit. */
  readonly commitBy: number;
  /** When it is abandoned. */
  readonly deadline: number;
  readonly endedAt?: number;
  /** When its row goes; only of one that has ended and is not kept until it is forgotten. */
  readonly keptUntil?: number;
  /** What was given with it. */
  readonly detail: unknown;
}

/** For how long something is reserved. Spans are in milliseconds. */
export interface ReservationTerms extends WithEffects {
  /** From now until the latest commit. */
  readonly commitWithin: number;
  /** From the latest commit until it is abandoned, while it can only be aborted; 1,000 without it. */
  readonly skew?: number;
  /**
   * How long the row stays behind its end, so that who comes late is told how it ended; with 0 it goes with its
   * end and the id is free at once. Without it, it stays until it is forgotten.
   */
  readonly keepFor?: number;
  /** One of the object's outboxes, which is told of the end in the commit of that. */
  readonly outbox?: string;
  /** JSON, bytes or nothing: at most 32 KiB as it is stored. */
  readonly detail?: unknown;
}

/** `made`, or there is one of that id already, pending or ended. */
export interface Reserving {
  readonly outcome: "made" | "exists";
  readonly reservation: Reservation;
}

/**
 * `settled`: done, and how it stands now. `ended_before`: in the way that `reservation` says. `too_late`: the
 * latest commit is over, and it will be abandoned. `missing`: it never was, its row went or was forgotten, or
 * another has its id now. Of all but `settled` nothing was written.
 */
export type Settlement =
  | { readonly outcome: "settled" | "ended_before" | "too_late"; readonly reservation: Reservation }
  | { readonly outcome: "missing" };

/** `forgotten`: the id is free. `still_pending` and `missing`: nothing was written. */
export type Forgetting =
  | { readonly outcome: "forgotten" | "missing" }
  | { readonly outcome: "still_pending"; readonly reservation: Reservation };

/** What is asked of reservations. */
export interface ReservationOptions {
  /**
   * Asked when nobody has settled a reservation by its deadline. It has 5 s; the effects that it returns commit
   * with the end. It may be asked again before it takes effect; while it throws or hangs, the reservation stays
   * pending and it is asked again, after 5 s at first and 60 s at most.
   */
  readonly onAbandon?: (reservation: Reservation) => Effects | void | Promise<Effects | void>;
}

/** A reservation as the core shows it. */
interface CoreReservation extends Omit<Reservation, "id" | "detail"> {
  readonly id: Uint8Array;
  readonly detail: Uint8Array;
}

interface CoreDone {
  readonly outcome: string;
  readonly reservation?: CoreReservation;
}

/** Which reservation is settled. */
interface WithSerial {
  /** That of the reservation: a late call never hits the next one of the same id. */
  readonly serial: string;
}

const RESERVATIONS: Known<ReservationOptions> = { onAbandon: true };
const TERMS: Known<ReservationTerms> = {
  commitWithin: true,
  skew: true,
  keepFor: true,
  outbox: true,
  detail: true,
  effects: true,
};
const SETTLE = { serial: true, effects: true } as const;
const ABORT = { serial: true, reason: true, effects: true } as const;
const EXTEND = { serial: true, detail: true, commitWithin: true, effects: true } as const;
const FORGET = { serial: true } as const;

/**
 * Reservations: what is held for a while ends once: committed in time, aborted, or abandoned at its deadline.
 *
 * Whoever reserves need not come back. A commit holds up to `commitBy` and not a millisecond longer; behind the
 * `deadline` the object's alarm abandons what nobody has settled.
 */
export class Reservations extends Verbs {
  readonly #wanted: () => BuiltIns;

  /** @internal */
  constructor(call: Call, wanted: () => BuiltIns) {
    super(call, "reservations", () => wanted().reservations !== undefined);
    this.#wanted = wanted;
  }

  /** Reserves. Effects are done if there was none of this id. */
  async reserve(id: string, terms: ReservationTerms): Promise<Reserving> {
    const of = idOf(id);
    const { commitWithin, outbox, ...wanted } = optionsOf("the terms of a reservation", terms, TERMS);
    const within = span("commitWithin", commitWithin);
    const skew = wanted.skew === undefined ? undefined : span("skew", wanted.skew);
    const keepFor = wanted.keepFor === undefined ? undefined : span("keepFor", wanted.keepFor);
    const detail = detailOf(wanted.detail);
    if (outbox !== undefined) {
      knownOutbox(outbox, this.#wanted());
    }
    const done = await this.verb<CoreDone>(
      (core, effects) => core.reservationReserve(of, within, skew, keepFor, outbox, detail, effects),
      wanted.effects,
    );
    return shown(done) as Reserving;
  }

  /** Commits it, if its time is not over. Effects are done if that is `settled`. */
  async commit(id: string, options: WithSerial & WithEffects): Promise<Settlement> {
    const of = idOf(id);
    const { serial } = ofOne(options, SETTLE);
    const done = await this.verb<CoreDone>(
      (core, effects) => core.reservationCommit(of, serial, effects),
      options.effects,
    );
    return shown(done) as Settlement;
  }

  /** Gives it up, at any time while it is pending. The reason has at most 255 bytes. */
  async abort(id: string, options: WithSerial & { readonly reason: string } & WithEffects): Promise<Settlement> {
    const of = idOf(id);
    const { serial } = ofOne(options, ABORT);
    const reason = shortText("the reason of an abort", options.reason, REASON_BYTES_MAX);
    const done = await this.verb<CoreDone>(
      (core, effects) => core.reservationAbort(of, serial, reason, effects),
      options.effects,
    );
    return shown(done) as Settlement;
  }

  /**
   * Lets it go on: with this detail in place of the former, to be committed within this many milliseconds from
   * now, or as late as before if that is later. For a middle state: a payment has begun.
   */
  async extend(
    id: string,
    options: WithSerial & { readonly detail: unknown; readonly commitWithin: number } & WithEffects,
  ): Promise<Settlement> {
    const of = idOf(id);
    const { serial } = ofOne(options, EXTEND);
    const within = span("commitWithin", options.commitWithin);
    const detail = detailOf(options.detail);
    const done = await this.verb<CoreDone>(
      (core, effects) => core.reservationExtend(of, serial, detail, within, effects),
      options.effects,
    );
    return shown(done) as Settlement;
  }

  /** Takes away one that has ended, before its time or because it has none: its id is free. */
  async forget(id: string, options: WithSerial): Promise<Forgetting> {
    const of = idOf(id);
    const { serial } = ofOne(options, FORGET);
    return shown(await this.verb<CoreDone>((core) => core.reservationForget(of, serial))) as Forgetting;
  }

  /** How it stands; `undefined` if there is none of this id. */
  async get(id: string): Promise<Reservation | undefined> {
    const of = idOf(id);
    const found = await this.verb<CoreReservation | undefined>((core) => core.reservationGet(of));
    return found === undefined ? undefined : reservationOf(found);
  }
}

/** Reservations' options as the core reads them, and what it asks. */
export function coreReservations(given: ReservationOptions): { settings: object; hooks: Record<string, Hook> } {
  const { onAbandon } = optionsOf("reservations", given, RESERVATIONS);
  optionalFunction("`onAbandon`", onAbandon);
  if (onAbandon === undefined) {
    return { settings: { hasOnAbandon: false }, hooks: {} };
  }
  const ask: Hook = async (reservation, keep) => keep(await onAbandon(reservationOf(reservation as CoreReservation)));
  return { settings: { hasOnAbandon: true }, hooks: { "reservation.abandon": ask } };
}

function idOf(id: unknown): string {
  return shortName("the id of a reservation", id, ID_BYTES_MAX);
}

/** Options that name a serial. */
function ofOne<T extends WithSerial>(options: T, known: Known<NoInfer<T>>): WithSerial {
  return { serial: text("the serial of a reservation", optionsOf("the options", options, known).serial) };
}

function detailOf(detail: unknown): Uint8Array {
  return encodePayload(detail, "the detail of a reservation", DETAIL_BYTES_MAX);
}

function shown(done: CoreDone): unknown {
  return done.reservation === undefined ? done : { ...done, reservation: reservationOf(done.reservation) };
}

function reservationOf(reservation: CoreReservation): Reservation {
  const id = decodeName(reservation.id);
  try {
    return { ...reservation, id, detail: decodePayload(reservation.detail) };
  } catch {
    // JavaScript's own error shows the text that it could not read, which is not for a log.
    throw new DuelineError("corrupt", `the detail of the reservation \`${id}\` does not decode`);
  }
}

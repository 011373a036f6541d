import { optionsOf, span, type Known } from "../checks.js";
import { DuelineError, inWords, textOf } from "../errors.js";
import type { Retry, Signalled } from "../handlers.js";
import type { Hook } from "../hooks.js";
import { decodeName, decodePayload } from "../payload.js";
import { withSignal } from "../running.js";

/** One attempt to deliver one outcome. Its `signal` is in no copy of it. */
export interface Delivery<T = unknown> extends Signalled {
  readonly outbox: string;
  /** Its place in the order of the outbox, from 1. */
  readonly sequence: number;
  /** The same in every attempt: what a receiver tells a second delivery by. */
  readonly id: string;
  readonly payload: T;
  /** When it was appended, in milliseconds since 1970. */
  readonly writtenAt: number;
  /** Which attempt this is; 1 is the first. One that a crash cut does not count. */
  readonly attempt: number;
}

/**
 * Delivers outcomes, one after the other. It returns nothing once the outcome has arrived; a
 * {@link SinkError} says what is to become of one that has not, any other error is a failed attempt.
 */
export type Sink<T = unknown> = (delivery: Delivery<T>) => void | Promise<void>;

/** An outbox: where its outcomes go, and how. */
export interface Outbox<T = unknown> {
  readonly deliver: Sink<T>;
  /** Checks and converts a stored payload. An outcome for which it throws is refused. */
  readonly parse?: (payload: unknown) => T;
  /** Most outcomes that leave in one commit, 1 to 80; 64 without it. A crash delivers these again. */
  readonly rows?: number;
  /** How long a call may take, in milliseconds; 5,000 without it. */
  readonly deadline?: number;
  /** After how long a run makes no further call, in milliseconds; 10,000 without it. The next follows at once. */
  readonly budget?: number;
  /** Without it 20 attempts, 1, 2, 4, .. s to 15 min apart, up to a fifth longer by chance. */
  readonly retry?: Retry;
}

/** An outbox with the type of its payloads. */
export function outbox<T>(options: Outbox<T>): Outbox {
  // Its sink is given what its own `parse` returned.
  return options as unknown as Outbox;
}

/**
 * Whose fault a delivery's failure is. `failed`: the outcome's; it is tried again after a back-off and set aside
 * after the last attempt, and those behind it go on. `unavailable`: the receiver's; no attempt is counted,
 * the order is kept and the whole outbox waits. `refused`: the outcome will never be taken and is set aside.
 */
export type SinkFault = "failed" | "unavailable" | "refused";

const FAULTS: readonly unknown[] = ["failed", "unavailable", "refused"] satisfies SinkFault[];

const MORE: Known<{ readonly after?: number; readonly cause?: unknown }> = { after: true, cause: true };

/** Thrown by a sink: the delivery failed. */
export class SinkError extends Error {
  override readonly name = "SinkError";
  readonly fault: SinkFault;
  /** How long the receiver wants not to be called, in milliseconds; at most a day is granted. */
  readonly after: number | undefined;

  /** The message is kept with an outcome that is set aside, up to 255 bytes. */
  constructor(fault: SinkFault, message: string, more: { readonly after?: number; readonly cause?: unknown } = {}) {
    super(message, more?.cause === undefined ? undefined : { cause: more.cause });
    optionsOf("what goes with a SinkError", more, MORE);
    if (!FAULTS.includes(fault)) {
      throw new DuelineError("invalid", `the fault of a delivery is \`failed\`, \`unavailable\` or \`refused\`, not ${inWords(fault)}`);
    }
    this.fault = fault;
    this.after = more.after === undefined ? undefined : span("after", more.after);
  }
}

/** A delivery as the core tells of it. */
interface CoreDelivery {
  readonly outbox: Uint8Array;
  readonly sequence: number;
  readonly id: Uint8Array;
  readonly payload: Uint8Array;
  readonly writtenAt: number;
  readonly attempt: number;
}

/** Why a delivery failed, as the core reads it. */
interface CoreRefusal {
  readonly fault: SinkFault;
  readonly text: string;
  readonly afterMs?: number;
}

/** What the core asks of these outboxes: to deliver an outcome. Nothing if it has arrived. */
export function delivers(outboxes: ReadonlyMap<string, Outbox>): Hook {
  return async (argument, _, running, failed): Promise<CoreRefusal | undefined> => {
    const { id, payload: stored, outbox: named, ...more } = argument as CoreDelivery;
    const name = decodeName(named);
    const outbox = outboxes.get(name);
    if (outbox === undefined) {
      failed(new DuelineError("unknown_kind", `the object has no outbox \`${name}\``));
      return { fault: "unavailable", text: `the object has no outbox \`${name}\`` };
    }
    let payload: unknown;
    let isDecoded = false;
    try {
      payload = decodePayload(stored);
      isDecoded = true;
      payload = outbox.parse === undefined ? payload : outbox.parse(payload);
    } catch (thrown) {
      // JavaScript's own error shows the text that it could not read, which is not for a log.
      failed(isDecoded ? thrown : new DuelineError("corrupt", "the payload does not decode"));
      return { fault: "refused", text: `the payload does not decode: ${textOf(thrown)}` };
    }
    const delivery = withSignal({ ...more, outbox: name, id: decodeName(id), payload }, running);
    try {
      const returned: unknown = await outbox.deliver(delivery);
      if (returned !== undefined) {
        throw new DuelineError("bad_outcome", `the sink of \`${name}\` returns nothing, or throws`);
      }
      return undefined;
    } catch (thrown) {
      failed(thrown);
      return refusalOf(thrown);
    }
  };
}

function refusalOf(thrown: unknown): CoreRefusal {
  const text = String(textOf(thrown));
  if (!(thrown instanceof SinkError)) {
    return { fault: "failed", text };
  }
  const { fault, after } = thrown;
  return { fault, text, ...(after === undefined ? {} : { afterMs: after }) };
}

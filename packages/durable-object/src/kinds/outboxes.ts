import { listOf, namesOf, optionalFunction, optionalWhole, optionsOf, text, whole, type Known } from "../checks.js";
import { asName, DuelineError } from "../errors.js";
import type { Hook } from "../hooks.js";
import { decodeName, decodePayload, encodePayload } from "../payload.js";
import { coreRetry, optionalSpan } from "../settings.js";
import type { BuiltIns } from "./built-ins.js";
import { delivers, type Outbox, type Sink } from "./sinks.js";
import { effectsOf, shortName, Verbs, type Call, type WithEffects } from "./verbs.js";

export { outbox, SinkError, type Delivery, type Outbox, type Sink, type SinkFault } from "./sinks.js";

/** What has come about and is to be told. */
export interface OutgoingOutcome {
  /** What a receiver tells a second delivery by: 1 to 128 bytes of UTF-8: an `occurrenceId`, or of a long one its hash. Nothing here keeps it unique. */
  readonly id: string;
  /** JSON, bytes, or nothing; at most 256 KiB as it is stored. */
  readonly payload?: unknown;
}

/** An outcome that waits. */
export interface WaitingOutcome {
  /** Its place in the order of the outbox, from 1. */
  readonly sequence: number;
  /** `undefined` if the row does not decode. */
  readonly id: string | undefined;
  /** `undefined` if it does not decode. */
  readonly payload: unknown;
  /** When it was appended, in milliseconds since 1970. */
  readonly writtenAt: number;
  /** How often its delivery has failed. */
  readonly attempt: number;
  /** Before when it is not tried again, in milliseconds since 1970; missing before its first failure. */
  readonly retryAt?: number;
}

/** An outcome that was set aside. */
export interface DeadOutcome {
  /** For `requeue` and `purge`. */
  readonly sequence: number;
  /** `exhausted`: its attempts; `refused` by the sink; `undecodable`: its row; `byHand`: by `setAside`. */
  readonly reason: "exhausted" | "refused" | "undecodable" | "byHand";
  /** The last error, or why it was set aside. */
  readonly error: string;
  readonly attempt: number;
  /** In milliseconds since 1970. */
  readonly deadAt: number;
  /** `undefined` if the row does not decode. */
  readonly id: string | undefined;
  /** `undefined` if it does not decode. */
  readonly payload: unknown;
}

/** A page in the order of the sequences; `next` is where to go on and is missing at the end. */
export interface OutboxPage<T> {
  readonly items: readonly T[];
  readonly next?: number;
}

/** Which page. */
interface PageOptions {
  /** `next` of the page before. */
  readonly after?: number;
  /** 1 to 100; 100 without it. */
  readonly limit?: number;
}

/** An outcome as the core shows it. */
type CoreOf<T> = Omit<T, "id" | "payload"> & { readonly id?: Uint8Array; readonly payload?: Uint8Array };

/** An outcome to be appended, as the core reads it. */
export interface CoreOutgoing {
  readonly id: string;
  readonly payload: Uint8Array;
  /** The name of its outbox, if it goes with a timer. */
  readonly name?: string;
}

const OUTBOX_NAME_BYTES_MAX = 64;
const OUTCOME_ID_BYTES_MAX = 128;
const PAYLOAD_BYTES_MAX = 256 * 1024;
/** Operations of a batch without those of the outbox, its timer and effects. */
const OUTCOMES_MAX = 95;
const PAGE_MAX = 100;
const OUTBOX: Known<Outbox> = { deliver: true, parse: true, rows: true, deadline: true, budget: true, retry: true };
const PAGE: Known<PageOptions> = { after: true, limit: true };
const OUTGOING: Known<OutgoingOutcome & { readonly name?: unknown }> = { id: true, payload: true, name: true };
const ID_HINT = "give a shorter one that is the same each time; in place of the `occurrenceId` of a timer with a long name, a hash of it";

/**
 * Outboxes: an outcome commits with the writes that it tells of, and is then given to the sink of its outbox, in
 * order, again after failures, until it has arrived. It may arrive more than once, with the same id.
 */
export class Outboxes extends Verbs {
  readonly #wanted: () => BuiltIns;

  /** @internal */
  constructor(call: Call, wanted: () => BuiltIns) {
    super(call, "outboxes", () => wanted().outboxes !== undefined);
    this.#wanted = wanted;
  }

  /**
   * Appends outcomes, at least one and at most 95 of 1 MiB, in the commit of the effects. Their sequences. If it
   * throws `unknown_outcome`, all of them are there with their effects, or none.
   */
  async append(
    outbox: string,
    outcomes: readonly OutgoingOutcome[],
    options: WithEffects = {},
  ): Promise<number[]> {
    const name = outboxName(outbox);
    knownOutbox(name, this.#wanted());
    const outgoing = outgoingOf(outcomes);
    return this.verb<number[]>((core, number) => core.outboxAppend(name, outgoing, number), effectsOf(options));
  }

  /**
   * Delivers what waits at once, whatever back-off or pause the outbox is in. Outcomes that failed still wait for
   * their own next attempts. Whether anything waits.
   */
  async wake(outbox: string): Promise<boolean> {
    const name = outboxName(outbox);
    return this.verb<boolean>((core) => core.outboxWake(name));
  }

  /** How many outcomes wait, and how many bytes of ids and payloads. */
  async backlog(outbox: string): Promise<{ readonly count: number; readonly bytes: number }> {
    const name = outboxName(outbox);
    return this.verb<{ count: number; bytes: number }>((core) => core.outboxBacklog(name));
  }

  /** One page of the outcomes that wait. */
  async waiting(outbox: string, options: PageOptions = {}): Promise<OutboxPage<WaitingOutcome>> {
    const name = outboxName(outbox);
    const [after, limit] = pageOf(options);
    const page = await this.verb<OutboxPage<CoreOf<WaitingOutcome>>>((core) =>
      core.outboxWaiting(name, after, limit),
    );
    const items = page.items.map((item): WaitingOutcome => {
      const { retryAt, ...more } = shown<WaitingOutcome>(item);
      return retryAt === 0 || retryAt === undefined ? more : { ...more, retryAt };
    });
    return { ...page, items };
  }

  /** One page of the outcomes that were set aside. */
  async dead(outbox: string, options: PageOptions = {}): Promise<OutboxPage<DeadOutcome>> {
    const name = outboxName(outbox);
    const [after, limit] = pageOf(options);
    const page = await this.verb<OutboxPage<CoreOf<DeadOutcome>>>((core) => core.outboxDead(name, after, limit));
    return { ...page, items: page.items.map((item) => shown<DeadOutcome>(item)) };
  }

  /**
   * Puts an outcome that was set aside behind all others, its attempts at 0. Its new sequence; `undefined` if it
   * was not set aside.
   */
  async requeue(outbox: string, sequence: number, options: WithEffects = {}): Promise<number | undefined> {
    const name = outboxName(outbox);
    const of = sequenceOf(sequence);
    return this.verb<number | undefined>((core, number) => core.outboxRequeue(name, of, number), effectsOf(options));
  }

  /** Throws an outcome away that was set aside. Whether it was. */
  async purge(outbox: string, sequence: number, options: WithEffects = {}): Promise<boolean> {
    const name = outboxName(outbox);
    const of = sequenceOf(sequence);
    return this.verb<boolean>((core, number) => core.outboxPurge(name, of, number), effectsOf(options));
  }

  /**
   * Sets an outcome aside that waits, and keeps up to 255 bytes of why. Whether it waited. A call that is under way
   * may deliver it all the same.
   */
  async setAside(outbox: string, sequence: number, why: string, options: WithEffects = {}): Promise<boolean> {
    const name = outboxName(outbox);
    const of = sequenceOf(sequence);
    const reason = text("why an outcome is set aside", why);
    return this.verb<boolean>((core, number) => core.outboxSetAside(name, of, reason, number), effectsOf(options));
  }
}

/** Outboxes as the core reads them, and what it asks. */
export function coreOutboxes(outboxes: Readonly<Record<string, Sink | Outbox>>): {
  settings: object;
  hooks: Record<string, Hook>;
} {
  const there = new Map<string, Outbox>();
  const settings = Object.entries(namesOf("outboxes", outboxes)).map(([named, given]) => {
    const name = outboxName(named);
    const outbox = typeof given === "function" ? { deliver: given } : given;
    if (typeof optionsOf(`the outbox \`${name}\``, outbox, OUTBOX).deliver !== "function") {
      throw new DuelineError("invalid", `the outbox \`${name}\` needs a sink: a function, or \`deliver\``);
    }
    optionalFunction("`parse`", outbox.parse);
    there.set(name, outbox);
    return {
      name,
      rowsMax: optionalWhole("rows", outbox.rows, 1, 80),
      deadlineMs: optionalSpan("deadline", outbox.deadline),
      budgetMs: optionalSpan("budget", outbox.budget),
      ...coreRetry(outbox.retry),
    };
  });
  return { settings, hooks: { "outbox.deliver": delivers(there) } };
}

/** Outcomes as the core reads them. */
function outgoingOf(outcomes: readonly OutgoingOutcome[]): CoreOutgoing[] {
  return listOf("outcomes", outcomes, 1, OUTCOMES_MAX).map(coreOutgoing);
}

/** An outcome as the core reads it. */
export function coreOutgoing(outcome: OutgoingOutcome): CoreOutgoing {
  const { id: given } = optionsOf("an outcome", outcome, OUTGOING);
  const id = shortName("the id of an outcome", given, OUTCOME_ID_BYTES_MAX, ID_HINT);
  return { id, payload: encodePayload(outcome.payload, "the payload of an outcome", PAYLOAD_BYTES_MAX) };
}

/** Throws unless a name is among the object's outboxes. */
export function knownOutbox(name: unknown, { outboxes = {} }: BuiltIns): void {
  if (typeof name !== "string" || !Object.hasOwn(outboxes, name)) {
    throw new DuelineError("unknown_kind", `this object has no outbox \`${asName(name)}\`: name it in \`builtIns\``);
  }
}

/** The name of an outbox: 1 to 64 bytes of UTF-8. */
export function outboxName(name: unknown): string {
  return shortName("the name of an outbox", name, OUTBOX_NAME_BYTES_MAX);
}

function sequenceOf(sequence: number): number {
  return whole("the sequence of an outcome", sequence, 0, Number.MAX_SAFE_INTEGER);
}

function pageOf(options: PageOptions): [after: number | undefined, limit: number] {
  const { after, limit } = optionsOf("the options", options, PAGE);
  return [
    optionalWhole("after", after, 0, Number.MAX_SAFE_INTEGER),
    optionalWhole("limit", limit, 1, PAGE_MAX) ?? PAGE_MAX,
  ];
}

/** An outcome of the core's with its id and its payload read. */
function shown<T extends { readonly id: string | undefined; readonly payload: unknown }>(core: CoreOf<T>): T {
  const { id, payload } = core;
  const read = { id: id === undefined ? undefined : decodeName(id), payload: payloadOf(payload) };
  return { ...core, ...read } as unknown as T;
}

function payloadOf(stored: Uint8Array | undefined): unknown {
  try {
    return stored === undefined ? undefined : decodePayload(stored);
  } catch {
    return undefined;
  }
}

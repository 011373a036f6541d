import { listOf, optionalText, optionsOf, type Known } from "./checks.js";
import { asName, DuelineError, fromCore } from "./errors.js";
import type { ObjectHost } from "./host.js";
import type { Opened } from "./opened.js";
import type { FollowUp } from "./outcomes.js";
import type { Payloads, Schedule, Scheduled } from "./types.js";
import { packed, policyNumber, type CoreWanted } from "./wanted.js";

/** Most timers of one call. */
const TIMERS_MAX = 1_000;
/** Most bytes of the payloads of one call as they are stored (8 MiB): they lie in memory more than once. */
const BYTES_MAX = 8 * 1024 * 1024;
/** One more than the last generation. */
const GENERATIONS = 1n << 64n;

/** What the core says if one of the timers cannot be scheduled. */
interface CoreRefused {
  /** Missing if it was no single one. */
  readonly index?: number;
  readonly error: unknown;
}

export const SCHEDULE: Known<Schedule<unknown>> = {
  name: true,
  dueAt: true,
  after: true,
  payload: true,
  policy: true,
  ifMatch: true,
};
const SCHEDULE_OF_KIND: Known<{ readonly kind: string } & Schedule<unknown>> = { kind: true, ...SCHEDULE };

/** A timer that a verb is asked to schedule; every misuse is an error here, before anything is written. */
export function wantedOf(host: ObjectHost, timer: { readonly kind: string } & Schedule<unknown>): CoreWanted {
  const ifMatch = optionalText("`ifMatch`", timer.ifMatch);
  const wanted = host.wanted(timer as FollowUp<Payloads>);
  if (ifMatch === undefined) {
    return wanted;
  }
  if (!wanted.isNamed) {
    throw new DuelineError("invalid", "`ifMatch` is for a timer with a name");
  }
  // A generation says it all: whoever gives one replaces that one.
  return { ...wanted, policy: policyNumber("replace"), ifMatch: generationOf(ifMatch) };
}

/** A generation, as the core gives it out. */
function generationOf(text: string): bigint {
  const generation = /^\d{1,20}$/.test(text) ? BigInt(text) : GENERATIONS;
  if (generation >= GENERATIONS) {
    throw new DuelineError("invalid", "this is not a generation of a timer");
  }
  return generation;
}

/** Schedules a timer in the place of the generation that it names. */
export async function scheduleOver(opened: Opened, wanted: CoreWanted): Promise<Scheduled> {
  const [scheduled] = await scheduleAll(opened, packed([wanted]), (error) => error);
  return scheduled as Scheduled;
}

/** Schedules all of these timers in one commit, or none. */
export async function scheduleMany(opened: Opened, timers: readonly unknown[]): Promise<Scheduled[]> {
  if (Array.isArray(timers) && timers.length > TIMERS_MAX) {
    throw new DuelineError("invalid", `a call schedules at most ${TIMERS_MAX} timers, not ${timers.length}: it is one commit`);
  }
  const list = listOf("timers", timers, 0, TIMERS_MAX);
  if (list.length === 0) {
    return [];
  }
  const bytes = packed(allWanted(opened.host, list));
  return scheduleAll(opened, bytes, (error, index) => refused(error, index, list[index]));
}

async function scheduleAll(
  opened: Opened,
  bytes: Uint8Array,
  refusal: (error: unknown, index: number) => unknown,
): Promise<Scheduled[]> {
  const done = (await opened.wait((core) => core.scheduleAll(bytes))) as Scheduled[] | CoreRefused;
  if (Array.isArray(done)) {
    return done;
  }
  const error = fromCore(done.error);
  throw done.index === undefined ? error : refusal(error, done.index);
}

function allWanted(host: ObjectHost, list: readonly unknown[]): CoreWanted[] {
  const names = new Map<string, number>();
  let bytes = 0;
  return list.map((timer, index) => {
    const wanted = one(index, timer, () => {
      const given = timer as { readonly kind: string } & Schedule<unknown>;
      const found = wantedOf(host, optionsOf("a timer", given, SCHEDULE_OF_KIND));
      const { kind, reference, isNamed } = found;
      const name = `${kind} ${reference}`;
      const other = names.get(name);
      if (isNamed && other !== undefined) {
        throw new DuelineError("invalid", `a call schedules a name once, and timer ${other} has this one`);
      }
      if (isNamed) {
        names.set(name, index);
      }
      return found;
    });
    bytes += wanted.payload.length;
    if (bytes > BYTES_MAX) {
      throw new DuelineError(
        "payload_too_large",
        `the payloads of a call take at most ${BYTES_MAX} bytes as they are stored: schedule the ${list.length} timers in more calls`,
      );
    }
    return wanted;
  });
}

/** Looks at one of the timers; its error says which it is. */
function one<T>(index: number, timer: unknown, look: () => T): T {
  try {
    return look();
  } catch (thrown) {
    throw refused(thrown, index, timer);
  }
}

/** The error of one timer, with the words and the marks of which it is. */
function refused(thrown: unknown, index: number, timer: unknown): unknown {
  if (!(thrown instanceof DuelineError)) {
    return thrown;
  }
  const { kind, name } = (typeof timer === "object" && timer !== null ? timer : {}) as Record<string, unknown>;
  const named = typeof name === "string" ? { name } : {};
  const which = [`timer ${index}`, ...(kind === undefined ? [] : [`\`${asName(kind)}\``]), ...Object.values(named).map(shortly)];
  return new DuelineError(thrown.code, `${which.join(" ")}: ${thrown.message.slice(thrown.code.length + 2)}`, {
    ...(thrown.cause === undefined ? {} : { cause: thrown.cause }),
    ...(thrown.current === undefined ? {} : { current: thrown.current }),
    ...(thrown.endsAt === undefined ? {} : { endsAt: thrown.endsAt }),
    refused: { index, kind: asName(kind), ...named },
  });
}

/** A name in a message, which one that is far too long shall not fill. */
function shortly(name: string): string {
  return JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}...` : name);
}

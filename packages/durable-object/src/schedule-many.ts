import { listOf, optionalText, optionsOf } from "./checks.js";
import { DuelineError, fromCore, inWords } from "./errors.js";
import type { ObjectHost } from "./host.js";
import type { Opened } from "./opened.js";
import type { FollowUp } from "./outcomes.js";
import type { Payloads, Schedule, Scheduled } from "./types.js";
import type { CoreWanted } from "./wanted.js";

/** Most timers of one call. */
const TIMERS_MAX = 1_000;
/** Most bytes of what they carry, as it is stored (8 MiB): all of it lies in memory more than once. */
const BYTES_MAX = 8 * 1024 * 1024;
/** How many numbers the core reads of each timer, and how many words it writes. */
const NUMBERS = 7;
const WORDS = 4;

const encoder = new TextEncoder();

/** A timer to be scheduled, and the generation that it is to replace. */
interface Asked {
  readonly wanted: CoreWanted;
  readonly ifMatch: string | undefined;
}

/** What the core says if one of the timers cannot be scheduled. */
interface CoreRefused {
  readonly index: number;
  readonly error: unknown;
}

/** A timer that a verb is asked to schedule; every misuse is an error here, before anything is written. */
export function askedOf(host: ObjectHost, timer: { readonly kind: string } & Schedule<unknown>): Asked {
  const ifMatch = optionalText("`ifMatch`", optionsOf("a timer", timer).ifMatch);
  const wanted = host.wanted(timer as FollowUp<Payloads>);
  if (ifMatch !== undefined && !wanted.isNamed) {
    throw new DuelineError("invalid", "`ifMatch` is for a timer with a name");
  }
  return { wanted, ifMatch };
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
  const [numbers, bytes] = packed(allAsked(opened.host, list));
  const done = (await opened.wait((core) => core.scheduleAll(numbers, bytes))) as string | CoreRefused;
  if (typeof done !== "string") {
    throw refused(fromCore(done.error), done.index, list[done.index]);
  }
  const words = done.split(" ");
  return list.map((_, index) => {
    const [generation = "", dueAt, state, outcome] = words.slice(index * WORDS, (index + 1) * WORDS);
    return { generation, dueAt: Number(dueAt), state, outcome } as Scheduled;
  });
}

function allAsked(host: ObjectHost, list: readonly unknown[]): Asked[] {
  const names = new Map<string, number>();
  return list.map((timer, index) => {
    try {
      const asked = askedOf(host, timer as { readonly kind: string } & Schedule<unknown>);
      const { kind, reference, isNamed } = asked.wanted;
      if (isNamed) {
        const name = `${kind} ${reference}`;
        const other = names.get(name);
        if (other !== undefined) {
          throw new DuelineError("invalid", `a call schedules a name once, and timer ${other} has this one`);
        }
        names.set(name, index);
      }
      return asked;
    } catch (thrown) {
      throw refused(thrown, index, timer);
    }
  });
}

/** The error of one timer, with the words and the marks of which it is. */
function refused(thrown: unknown, index: number, timer: unknown): unknown {
  if (!(thrown instanceof DuelineError)) {
    return thrown;
  }
  const { kind, name } = (typeof timer === "object" && timer !== null ? timer : {}) as Record<string, unknown>;
  const named = typeof name === "string" ? { name } : {};
  const which = [`timer ${index}`, ...(kind === undefined ? [] : [`\`${inWords(kind)}\``]), ...Object.values(named).map(shortly)];
  return new DuelineError(thrown.code, `${which.join(" ")}: ${thrown.message.slice(thrown.code.length + 2)}`, {
    ...(thrown.cause === undefined ? {} : { cause: thrown.cause }),
    ...(thrown.current === undefined ? {} : { current: thrown.current }),
    ...(thrown.endsAt === undefined ? {} : { endsAt: thrown.endsAt }),
    refused: { index, kind: inWords(kind), ...named },
  });
}

/** A name in a message, which one that is far too long shall not fill. */
function shortly(name: string): string {
  return JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}...` : name);
}

/** All of them as the core reads them: to hand over each would cost more than to schedule it. */
function packed(all: readonly Asked[]): [Float64Array, Uint8Array] {
  const numbers = new Float64Array(all.length * NUMBERS);
  const parts: Uint8Array[] = [];
  let length = 0;
  const add = (part: Uint8Array): number => {
    parts.push(part);
    length += part.length;
    return part.length;
  };
  all.forEach(({ wanted, ifMatch }, index) => {
    const { kind, reference, isNamed, dueAt, payload, policy } = wanted;
    const name = isNamed ? add(encoder.encode(reference)) : 0;
    const generation = ifMatch === undefined ? 0 : add(encoder.encode(ifMatch));
    numbers.set([kind, isNamed ? 1 : 0, dueAt, policy, name, generation, add(payload)], index * NUMBERS);
  });
  if (length > BYTES_MAX) {
    throw new DuelineError(
      "payload_too_large",
      `the timers of a call carry at most ${BYTES_MAX} bytes as they are stored, these ${length}: schedule them in more calls`,
    );
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return [numbers, bytes];
}

import { dueOf, nameOf, span } from "./checks.js";
import { DuelineError, textOf } from "./errors.js";
import type { Detached, DueTimer, Inline } from "./handlers.js";
import type { Instance } from "./instance.js";
import { checkedEffects, isAsync, isThenable, KeptEffects } from "./kept-effects.js";
import { Outcome, type Effects, type FollowUp, type Together } from "./outcomes.js";
import { decodeName, decodePayload, encodePayload, shownPayload } from "./payload.js";
import { Running } from "./running.js";
import type { Payloads, Policy } from "./types.js";

const FOLLOW_UPS_MAX = 20;

/** A kind as its handlers need it. */
export interface HostKind {
  readonly name: string;
  readonly kind: Inline<unknown> | Detached<unknown>;
}

/** A due timer as the core hands it over. */
export type CoreTimer = [
  kind: number,
  run: number,
  reference: Uint8Array,
  isNamed: boolean,
  payload: Uint8Array,
  dueAt: number,
  now: number,
  attempt: number,
  generation: bigint,
  lastError: string | undefined,
];

/** A timer to be scheduled, as the core reads it. */
export interface CoreWanted {
  readonly kind: number;
  readonly reference: string;
  readonly isNamed: boolean;
  readonly dueAt: number;
  readonly payload: Uint8Array;
  readonly policy: Policy;
}

/** An outcome, as the core reads it. */
interface CoreOutcome {
  readonly said: "done" | "reschedule" | "retry" | "dead" | "failed" | "undecodable" | "output";
  readonly dueAt?: number;
  readonly payload?: Uint8Array;
  readonly afterMs?: number;
  readonly reason?: string;
  readonly effects?: number;
  readonly schedules?: readonly CoreWanted[];
  readonly output?: unknown;
}

/** What was said of a run. A timer that is just done is the number of its effects, 0 without any. */
type CoreSaid = number | CoreOutcome;

/** Keeps effects that a hook returned, if it did, for the commit that goes with its answer: their number, or 0. */
export type Keep = (effects: unknown) => number;

/**
 * A function that a built-in kind asks. What it answers is for the core; effects of the application it keeps.
 * `running` is whether the engine still waits for what it promised.
 */
export type Hook = (argument: unknown, keep: Keep, running: Running) => unknown;

/** The built-in kinds of an object. */
export interface BuiltIn {
  /** As the core reads them. */
  readonly settings: object;
  /** What they ask, by its name. */
  readonly hooks: Record<string, Hook>;
  /** Their numbers, by the names under which they are shown, whether the object has them or not. */
  readonly kinds: Readonly<Record<string, number>>;
  /** The numbers of those that it has. */
  readonly handled: ReadonlySet<number>;
  /** What they have the core commit with what becomes of a timer. */
  readonly together: (together: object) => object;
}

/** What one object does for the core: its handlers, its effects, its waits. */
export class ObjectHost {
  readonly #instance: Instance;
  readonly #identity: string;
  readonly #kinds = new Map<number, HostKind>();
  readonly #numbers = new Map<string, number>();
  readonly #hooks: Readonly<Record<string, Hook>>;
  readonly #builtIn: BuiltIn | undefined;
  readonly #effects = new KeptEffects();
  readonly #runs = new Map<number, Running>();
  readonly #sleeps = new Map<Promise<void>, ReturnType<typeof setTimeout>>();

  constructor(instance: Instance, identity: string, builtIn: BuiltIn | undefined) {
    this.#instance = instance;
    this.#identity = identity;
    this.#hooks = builtIn?.hooks ?? {};
    this.#builtIn = builtIn;
    for (const [name, number] of Object.entries(builtIn?.kinds ?? {})) {
      this.#numbers.set(name, number);
    }
  }

  /** Which kind each name has; said once the object is open. */
  know(numbers: Readonly<Record<string, number>>, kinds: readonly HostKind[]): void {
    for (const [name, number] of Object.entries(numbers)) {
      this.#numbers.set(name, number);
    }
    for (const kind of kinds) {
      const number = this.#numbers.get(kind.name);
      if (number !== undefined) {
        this.#kinds.set(number, kind);
      }
    }
  }

  /** Whether effects are being done: the store is in the middle of a transaction. */
  get isInEffects(): boolean {
    return this.#effects.isBusy;
  }

  /** Effects of runs that are all over. */
  forgetEffects(): void {
    this.#effects.forgetRuns();
  }

  /**
   * Calls a verb with effects that go with what it commits. What they throw is the verb's error, and so is what
   * a hook throws. A verb that asks hooks has a number without effects too.
   */
  async withEffects<T>(
    kind: string,
    effects: Effects | undefined,
    asksHooks: boolean,
    verb: (number: number | undefined) => Promise<T>,
  ): Promise<T> {
    if (effects === undefined && !asksHooks) {
      return verb(undefined);
    }
    const checked = effects === undefined ? (): void => undefined : checkedEffects(kind, effects);
    return this.#effects.during(kind, checked, verb);
  }

  // What the core calls.

  // A handler that is not asynchronous gets no promise: it would cost more than everything else.
  run(...timer: CoreTimer): CoreSaid | Promise<CoreSaid> {
    return this.#running(timer, ({ name, kind }, due) => {
      if (kind.call === undefined) {
        return then(kind.run(due), (returned) => this.#outcome(name, returned, due.now));
      }
      return then(kind.call(due), (output) => ({ said: "output", output }));
    });
  }

  settle(output: unknown, ...timer: CoreTimer): CoreSaid | Promise<CoreSaid> {
    return this.#running(timer, ({ name, kind }, due) => {
      const settle = kind.call === undefined ? undefined : kind.settle;
      return then(settle?.(due, output as never), (returned) => this.#outcome(name, returned, due.now));
    });
  }

  abandon(run: number): void {
    this.#runs.get(run)?.abandon();
    this.#runs.delete(run);
  }

  effect(number: number): string | undefined {
    return this.#effects.do(number);
  }

  ask(hook: string, argument: unknown, verb: number | undefined, run: number): unknown {
    const fail = (thrown: unknown): never => {
      this.#effects.threw(verb, thrown);
      throw thrown;
    };
    const keep: Keep = (effects) => {
      if (effects === undefined) {
        return 0;
      }
      if (typeof effects !== "function") {
        throw new DuelineError("bad_outcome", `\`${hook}\` returned neither nothing nor effects`);
      }
      return this.#effects.keep(hook, checkedEffects(hook, effects), verb);
    };
    try {
      const asked = this.#hooks[hook];
      if (asked === undefined) {
        throw new DuelineError("invalid", `the object has no \`${hook}\``);
      }
      const running = new Running();
      const answer = asked(argument, keep, running);
      if (!isThenable(answer)) {
        return answer;
      }
      this.#runs.set(run, running);
      return Promise.resolve(answer)
        .catch(fail)
        .finally(() => this.#runs.delete(run));
    } catch (thrown) {
      return fail(thrown);
    }
  }

  wake(task: number): void {
    this.#instance.wake(task);
  }

  sleep(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const slept = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    if (timer !== undefined) {
      this.#sleeps.set(slept, timer);
    }
    return slept;
  }

  endSleep(slept: Promise<void>): void {
    clearTimeout(this.#sleeps.get(slept) ?? null);
    this.#sleeps.delete(slept);
  }

  /** Runs a handler; every error of it is an outcome. */
  #running(
    timer: CoreTimer,
    handle: (kind: HostKind, due: DueTimer) => CoreSaid | Promise<CoreSaid>,
  ): CoreSaid | Promise<CoreSaid> {
    const [number, run, , , stored] = timer;
    const kind = this.#kinds.get(number);
    if (kind === undefined) {
      return { said: "failed", reason: "the kind has no handler" };
    }
    let payload: unknown;
    try {
      payload = decodePayload(stored);
      payload = kind.kind.parse === undefined ? payload : kind.kind.parse(payload);
    } catch (thrown) {
      return { said: "undecodable", reason: `the payload does not decode: ${textOf(thrown)}` };
    }
    const failed = (thrown: unknown): CoreOutcome => ({ said: "failed", reason: textOf(thrown) });
    const running = new Running();
    try {
      const said = handle(kind, this.#due(timer, kind.name, payload, running));
      if (!(said instanceof Promise)) {
        return said;
      }
      this.#runs.set(run, running);
      return said.catch(failed).finally(() => this.#runs.delete(run));
    } catch (thrown) {
      return failed(thrown);
    }
  }

  #due(timer: CoreTimer, kind: string, payload: unknown, running: Running): DueTimer {
    const [number, , reference, isNamed, , dueAt, now, attempt, generation, lastError] = timer;
    const identity = this.#identity;
    const due: { -readonly [Part in keyof DueTimer]: DueTimer[Part] } = {
      kind,
      payload,
      dueAt,
      now,
      attempt,
      generation: String(generation),
      get occurrenceId() {
        return `${identity}/${number}/${encodeURIComponent(decodeName(reference))}/${generation}`;
      },
      get signal() {
        return running.signal;
      },
    };
    if (isNamed) {
      due.name = decodeName(reference);
    }
    if (lastError !== undefined) {
      due.lastError = lastError;
    }
    return due;
  }

  /** What a handler returned, as the core reads it. */
  #outcome(kind: string, returned: unknown, now: number): CoreSaid {
    if (returned === undefined) {
      return 0;
    }
    if (typeof returned === "function") {
      return this.#together(kind, { effects: returned as Effects }).effects ?? 0;
    }
    if (!(returned instanceof Outcome)) {
      throw new DuelineError(
        "bad_outcome",
        `the handler of \`${kind}\` returned neither nothing, effects, nor an outcome made by done, reschedule, retry or dead`,
      );
    }
    const { said, details } = returned;
    const reason = details.reason === undefined ? {} : { reason: String(details.reason) };
    switch (said) {
      case "done":
      case "dead":
        return { said, ...reason, ...this.#together(kind, details.together) };
      case "retry":
        return {
          said,
          ...reason,
          ...(details.afterMs === undefined ? {} : { afterMs: span("after", details.afterMs) }),
        };
      case "reschedule":
        return {
          said,
          dueAt: details.when === undefined ? now : dueOf(details.when),
          ...(details.payload === undefined ? {} : { payload: encodePayload(details.payload.value) }),
          ...this.#together(kind, details.together),
        };
    }
  }

  #together(kind: string, together: Together = {}): Pick<CoreOutcome, "effects" | "schedules"> {
    const { effects, schedule } = together;
    if (effects !== undefined && isAsync(effects)) {
      throw new DuelineError("effects_async", `the effects of \`${kind}\` are an async function; await before you return them`);
    }
    if (schedule !== undefined && schedule.length > FOLLOW_UPS_MAX) {
      throw new DuelineError("invalid", `at most ${FOLLOW_UPS_MAX} timers are scheduled with another, not ${schedule.length}`);
    }
    return {
      ...(effects === undefined ? {} : { effects: this.#effects.keep(kind, effects) }),
      ...(schedule === undefined ? {} : { schedules: schedule.map((timer) => this.wanted(timer)) }),
      ...this.#builtIn?.together(together),
    };
  }

  /** A timer to be scheduled; every misuse is an error here, before anything is written. */
  wanted(timer: FollowUp<Payloads>): CoreWanted {
    const kind = this.#numbers.get(timer.kind);
    if (kind === undefined || !this.#kinds.has(kind)) {
      throw new DuelineError("unknown_kind", `no handler of this object is called \`${timer.kind}\``);
    }
    const { name, policy } = timer;
    if (policy !== undefined && name === undefined) {
      throw new DuelineError("invalid", "`policy` is for a timer with a name");
    }
    return {
      kind,
      reference: name === undefined ? "" : nameOf(name),
      isNamed: name !== undefined,
      dueAt: dueOf(timer),
      payload: encodePayload(timer.payload),
      policy: policy ?? "replace",
    };
  }

  /** The number of a kind that has, or had, a handler. */
  number(kind: string): number {
    const number = this.#numbers.get(kind);
    if (number === undefined) {
      throw new DuelineError("unknown_kind", `no handler of this object is or was called \`${kind}\``);
    }
    return number;
  }

  /** Whether a kind has a handler. */
  runs(number: number): boolean {
    return this.#kinds.has(number) || this.#builtIn?.handled.has(number) === true;
  }

  /** The name of a kind's number. */
  nameOf(number: number): string {
    for (const [name, known] of this.#numbers) {
      if (known === number) {
        return name;
      }
    }
    return `#${number}`;
  }

  /** A stored payload for whoever lists; `undefined` if it does not decode. */
  shown(stored: Uint8Array): unknown {
    return shownPayload(stored);
  }
}

/** Goes on with what a handler returned: at once, or behind its promise. */
function then<T>(returned: unknown, goOn: (value: unknown) => T): T | Promise<T> {
  return isThenable(returned) ? Promise.resolve(returned).then(goOn) : goOn(returned);
}

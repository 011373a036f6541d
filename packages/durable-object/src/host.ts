import { dueOf, isThenable, nameOf, optionsOf, span } from "./checks.js";
import { asName, DuelineError, inWords, textOf } from "./errors.js";
import type { Detached, DueTimer, Inline } from "./handlers.js";
import type { BuiltIn, Hook, Keep } from "./hooks.js";
import type { Instance } from "./instance.js";
import { checkedEffects, KeptEffects } from "./kept-effects.js";
import type { Log } from "./log.js";
import { Outcome, type CancelWith, type Effects, type FollowUp, type Together } from "./outcomes.js";
import { decodePayload, encodePayload, shownPayload } from "./payload.js";
import { dueTimer, inTime, Running, TIMEOUT_MS_MAX, type CoreTimer } from "./running.js";
import type { Payloads } from "./types.js";
import { scheduledView } from "./views.js";
import { CANCEL, CANCELLED, FOLLOW_UP, goingWith, NOTHING, notTooMany, once, packed, policyNumber, type CoreWanted } from "./wanted.js";

/** What a kind has that does not say otherwise. */
const ATTEMPTS = 20;
const DEADLINE_MS = 5_000;
const CALL_DEADLINE_MS = 30_000;
/** How long a verb waits for a hook that says nothing else. */
const HOOK_DEADLINE_MS = 30_000;

/** A kind as its handlers need it. */
export interface HostKind {
  readonly name: string;
  readonly kind: Inline<unknown> | Detached<unknown>;
}

/** An outcome, as the core reads it. */
interface CoreOutcome {
  readonly said: "done" | "reschedule" | "retry" | "dead" | "failed" | "undecodable" | "output";
  readonly dueAt?: number;
  readonly payload?: Uint8Array;
  readonly afterMs?: number;
  readonly reason?: string;
  readonly effects?: number;
  /** Timers to be scheduled or cancelled, {@link packed}. */
  readonly schedules?: Uint8Array;
  readonly output?: unknown;
}

/** What was said of a run. A timer that is just done is the number of its effects, 0 without any. */
type CoreSaid = number | CoreOutcome;

/** What the core waits for. */
interface Awaited {
  readonly running: Running;
  /** Ends a wait that the core has given up: it keeps what belongs to a promise until that is settled. */
  release?: () => void;
}

/** A run of a handler. */
interface Run extends Awaited {
  readonly kind: HostKind;
  readonly due: DueTimer;
}

/** A hook that is asked by the alarm, or by the verb of a number. */
interface Asked extends Awaited {
  readonly hook: string;
  readonly argument: unknown;
  readonly verb: number | undefined;
}

/** What one object does for the core: its handlers, its effects, its waits. */
export class ObjectHost {
  readonly #instance: Instance;
  readonly #identity: string;
  readonly #kinds = new Map<number, HostKind>();
  readonly #numbers = new Map<string, number>();
  readonly #builtInKinds: ReadonlyMap<string, number>;
  readonly #hooks: Readonly<Record<string, Hook>>;
  readonly #builtIn: BuiltIn | undefined;
  readonly #effects: KeptEffects<Run | Asked>;
  readonly #runs = new Map<number, Run>();
  readonly #asked = new Map<number, Asked>();
  readonly #log: Log;
  /** What the core has yet to ask for. */
  #said: unknown;
  #refusal: string | undefined;
  readonly #sleeps = new Map<Promise<void>, { readonly timer: ReturnType<typeof setTimeout>; readonly wake: () => void }>();

  constructor(instance: Instance, identity: string, builtIn: BuiltIn | undefined, log: Log) {
    this.#instance = instance;
    this.#log = log;
    this.#effects = new KeptEffects<Run | Asked>({
      failed: (of, reason, thrown) => this.#failed(of, reason, thrown),
      dead: (of, reason) => "due" in of && log.dead(of.due, "handler", reason),
    });
    this.#identity = identity;
    this.#hooks = builtIn?.hooks ?? {};
    this.#builtIn = builtIn;
    this.#builtInKinds = new Map(Object.entries(builtIn?.kinds ?? {}));
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

  // A handler that is not asynchronous gets no promise, and what most runs say is a number: anything else would cost
  // more than everything else.

  /** The number of the effects of a timer that is done, or 0 without any; -1 for the rest, which is {@link said}. */
  run(timer: CoreTimer): number {
    return this.#told(
      this.#running(timer, (run) => {
        const { kind } = run.kind;
        if (kind.call === undefined) {
          return then(kind.run(run.due), (returned) => this.#outcome(run, returned));
        }
        return then(kind.call(run.due), (output) => ({ said: "output", output }));
      }),
    );
  }

  /** As {@link run}, of a timer whose call has brought this. */
  settle(output: unknown, timer: CoreTimer): number {
    return this.#told(
      this.#running(timer, (run) => {
        const { kind } = run.kind;
        const settle = kind.call === undefined ? undefined : kind.settle;
        return then(settle?.(run.due, output as never), (returned) => this.#outcome(run, returned));
      }),
    );
  }

  /** What was said of the last run. */
  said(): unknown {
    const said = this.#said;
    this.#said = undefined;
    return said;
  }

  #told(said: CoreSaid | Promise<CoreSaid>): number {
    if (typeof said === "number") {
      return said;
    }
    this.#said = said;
    return -1;
  }

  abandon(run: number): void {
    const asked = this.#asked.get(run);
    if (asked !== undefined) {
      this.#asked.delete(run);
      this.#failed(asked, "it took too long: nobody waits for it any more");
      asked.running.abandon();
      asked.release?.();
    }
    const found = this.#runs.get(run);
    if (found === undefined) {
      return;
    }
    this.#runs.delete(run);
    const { kind } = found.kind;
    const deadline = kind.deadline ?? (kind.call === undefined ? DEADLINE_MS : CALL_DEADLINE_MS);
    this.#failed(found, `the run passed its deadline of ${deadline} ms`);
    found.running.abandon();
    found.release?.();
  }

  /** Does effects. Whether they are done; if not, {@link refusal} says why. */
  effect(number: number): boolean {
    this.#refusal = this.#effects.do(number);
    return this.#refusal === undefined;
  }

  refusal(): string {
    return this.#refusal ?? "";
  }

  ask(hook: string, argument: unknown, verb: number | undefined, run: number): unknown {
    const running = new Running();
    const of: Asked = { hook, argument, verb, running };
    const failed = (thrown: unknown): void => this.#failed(of, textOf(thrown), { value: thrown });
    // The core takes the text, and whatever else was thrown would break it.
    const failure = (thrown: unknown): string => {
      this.#effects.threw(verb, thrown);
      failed(thrown);
      return textOf(thrown);
    };
    const keep: Keep = (effects) => {
      if (effects === undefined || running.isAbandoned) {
        return 0;
      }
      if (typeof effects !== "function") {
        throw new DuelineError("bad_outcome", `\`${hook}\` returned neither nothing nor effects`);
      }
      return this.#effects.keep(hook, checkedEffects(hook, effects), verb, of);
    };
    try {
      const asked = this.#hooks[hook];
      if (asked === undefined) {
        throw new DuelineError("invalid", `the object has no \`${hook}\``);
      }
      const answer = asked(argument, keep, running, failed);
      if (!isThenable(answer)) {
        return answer;
      }
      const ms = this.#builtIn?.deadlines[hook] ?? (verb === undefined ? undefined : HOOK_DEADLINE_MS);
      const answered = inTime(answer, running, ms, (late) => this.#late(of, late), failure);
      return this.#unlessLost(answered, this.#asked, run, of);
    } catch (thrown) {
      throw failure(thrown);
    }
  }

  /** The error of a hook that has not answered within so many milliseconds. */
  #late({ hook, argument }: Asked, ms: number): DuelineError {
    const about = this.#builtIn?.about(hook, argument);
    const asked = about === undefined ? `\`${hook}\`` : `\`${about.hook}\` of \`${about.name}\` (${about.kind})`;
    return new DuelineError("deadline", `${asked} did not answer within ${ms} ms; nothing has changed`);
  }

  readonly scheduled = scheduledView;

  wake(task: number): void {
    this.#instance.wake(task);
  }

  sleep(ms: number): Promise<void> {
    const { promise, resolve } = settler<void>();
    // One that is longer ends at once in most runtimes. The core goes on sleeping if time is left.
    const wake = (): void => {
      if (!this.#instance.isLost) {
        resolve();
      }
    };
    this.#sleeps.set(promise, { timer: setTimeout(wake, Math.min(ms, TIMEOUT_MS_MAX)), wake });
    return promise;
  }

  endSleep(slept: Promise<void>): void {
    const sleep = this.#sleeps.get(slept);
    this.#sleeps.delete(slept);
    clearTimeout(sleep?.timer ?? null);
    // As `release`: the core has given the wait up, and would keep what belongs to it.
    sleep?.wake();
  }

  /** What the core waits for. Behind a trap it never settles: who waited is gone, and to tell it would throw. */
  #unlessLost<T, O extends Awaited>(promise: Promise<T>, under: Map<number, O>, number: number, of: O): Promise<T> {
    under.set(number, of);
    return new Promise((resolve, reject) => {
      of.release = (): void => resolve(undefined as T);
      const told = <V>(settle: (value: V) => void) => (value: V): void => {
        under.delete(number);
        if (!this.#instance.isLost) {
          settle(value);
        }
      };
      promise.then(told(resolve), told(reject));
    });
  }

  /** Runs a handler; every error of it is an outcome. */
  #running(timer: CoreTimer, handle: (run: Run) => CoreSaid | Promise<CoreSaid>): CoreSaid | Promise<CoreSaid> {
    const kind = this.#kinds.get(timer[0]);
    if (kind === undefined) {
      return { said: "failed", reason: "the kind has no handler" };
    }
    const running = new Running();
    let payload: unknown;
    let isDecoded = false;
    try {
      payload = decodePayload(timer[4]);
      isDecoded = true;
      payload = kind.kind.parse === undefined ? payload : kind.kind.parse(payload);
    } catch (thrown) {
      const due = dueTimer(timer, kind.name, undefined, running, this.#identity);
      const reason = `the payload does not decode: ${textOf(thrown)}`;
      if (isDecoded) {
        this.#log.dead(due, "undecodable", reason, { value: thrown });
      } else {
        // JavaScript's own error shows the text that it could not read, which is not for a log.
        this.#log.dead(due, "undecodable", "the payload does not decode");
      }
      return { said: "undecodable", reason };
    }
    const run: Run = { kind, due: dueTimer(timer, kind.name, payload, running, this.#identity), running };
    const failed = (thrown: unknown): CoreOutcome => {
      const reason = textOf(thrown);
      this.#failed(run, reason, { value: thrown });
      return { said: "failed", reason };
    };
    try {
      const said = handle(run);
      if (!(said instanceof Promise)) {
        return said;
      }
      return this.#unlessLost(said.catch(failed), this.#runs, timer[1], run);
    } catch (thrown) {
      return failed(thrown);
    }
  }

  /** Tells of a run or a hook that failed, unless nobody waits for it any more. What a verb asks is the verb's. */
  #failed(of: Run | Asked | undefined, error: string, thrown?: { readonly value: unknown }): void {
    if (of === undefined || of.running.isAbandoned) {
      return;
    }
    if ("due" in of) {
      this.#log.failed(of.due, of.kind.kind.retry?.attempts ?? ATTEMPTS, error, thrown);
    } else if (of.verb === undefined) {
      const about = this.#builtIn?.about(of.hook, of.argument);
      if (about !== undefined) {
        this.#log.hook(about, error, thrown);
      }
    }
  }

  /** What a handler returned, as the core reads it. */
  #outcome(run: Run, returned: unknown): CoreSaid {
    // What comes late is dropped, with its effects.
    if (returned === undefined || run.running.isAbandoned) {
      return 0;
    }
    if (typeof returned === "function") {
      return this.#effects.keep(run.kind.name, checkedEffects(run.kind.name, returned), undefined, run);
    }
    if (!(returned instanceof Outcome)) {
      throw new DuelineError(
        "bad_outcome",
        `the handler of \`${run.kind.name}\` returned ${inWords(returned)}, which is neither nothing, effects, nor an outcome made by done, reschedule, retry or dead`,
      );
    }
    const { said, details } = returned;
    const reason = details.reason === undefined ? {} : { reason: String(details.reason) };
    switch (said) {
      case "done":
        return { said, ...this.#together(run, details.together) };
      case "dead": {
        const outcome = { said, ...reason, ...this.#together(run, details.together, String(details.reason)) };
        if (outcome.effects === undefined && !run.running.isAbandoned) {
          this.#log.dead(run.due, "handler", String(details.reason));
        }
        return outcome;
      }
      case "retry": {
        const after = details.afterMs === undefined ? {} : { afterMs: span("after", details.afterMs) };
        this.#failed(run, String(details.reason));
        return { said, ...reason, ...after };
      }
      case "reschedule":
        return {
          said,
          dueAt: details.when === undefined ? run.due.now : dueOf(details.when),
          ...(details.payload === undefined ? {} : { payload: encodePayload(details.payload.value) }),
          ...this.#together(run, details.together),
        };
    }
  }

  #together(run: Run, together: Together = {}, dead?: string): Pick<CoreOutcome, "effects" | "schedules"> {
    const { effects, schedule, cancel } = together;
    const { kind, name } = run.due;
    const number = this.#numbers.get(kind);
    const schedules = [
      ...goingWith("timers scheduled", schedule).map((timer) => this.wanted(optionsOf("a timer", timer, FOLLOW_UP))),
      ...goingWith("timers cancelled", cancel).map((timer) => this.#unwanted(optionsOf("a timer to cancel", timer, CANCELLED))),
    ];
    if (this.#builtIn === undefined && "outbox" in together) {
      throw new DuelineError("invalid", "outcomes are told by objects of the entry `@dueline/durable-object/kinds`");
    }
    const told = this.#builtIn?.together(together) ?? {};
    notTooMany(schedules.length + (told.outbox?.length ?? 0));
    once(schedules);
    if (schedules.some(({ kind: other, reference, isNamed }) => isNamed && reference === name && other === number)) {
      throw new DuelineError("invalid", "a handler does not schedule or cancel the timer that it handles: return `reschedule`");
    }
    return {
      ...(effects === undefined ? {} : { effects: this.#effects.keep(kind, checkedEffects(kind, effects), undefined, run, dead) }),
      ...(schedules.length === 0 ? {} : { schedules: packed(schedules) }),
      ...told,
    };
  }

  /** A timer to be cancelled, of a kind that has, or had, a handler. */
  #unwanted(timer: CancelWith<Payloads>): CoreWanted {
    const [kind, reference] = [this.ownNumber(timer.kind), nameOf(timer.name)];
    return { kind, reference, isNamed: true, dueAt: 0, payload: NOTHING, policy: CANCEL };
  }

  /** A timer to be scheduled; every misuse is an error here, before anything is written. */
  wanted(timer: FollowUp<Payloads>): CoreWanted {
    const kind = this.#numbers.get(timer.kind);
    if (kind === undefined || !this.#kinds.has(kind)) {
      throw new DuelineError("unknown_kind", `no handler of this object is called \`${asName(timer.kind)}\``);
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
      policy: policyNumber(policy),
    };
  }

  /** The number of a kind that has, or had, a handler. */
  number(kind: string): number {
    return this.#builtInKinds.get(kind) ?? this.ownNumber(kind);
  }

  /** As {@link number}, of a kind whose timers are the application's: those of others have verbs of their own. */
  ownNumber(kind: string): number {
    const number = this.#numbers.get(kind);
    if (number === undefined) {
      throw new DuelineError("unknown_kind", `no handler of this object is or was called \`${asName(kind)}\``);
    }
    return number;
  }

  /** Whether a kind has a handler. */
  runs(number: number): boolean {
    return this.#kinds.has(number) || this.#builtIn?.handled.has(number) === true;
  }

  /** The name of a kind's number. */
  nameOf(number: number): string {
    for (const [name, known] of [...this.#builtInKinds, ...this.#numbers]) {
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

/** A promise, and what resolves it. */
function settler<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Goes on with what a handler returned: at once, or behind its promise. */
function then<T>(returned: unknown, goOn: (value: unknown) => T): T | Promise<T> {
  return isThenable(returned) ? Promise.resolve(returned).then(goOn) : goOn(returned);
}

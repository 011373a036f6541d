import { DuelineError, inWords, textOf } from "./errors.js";
import type { DueTimer } from "./handlers.js";
import type { About } from "./hooks.js";
import type { AlarmReport, DeadLetter } from "./types.js";

/** What is said of a timer whose run went wrong. Its payload is not among it. */
interface OfTimer {
  readonly kind: string;
  /** Without one the timer is anonymous. */
  readonly name?: string;
  /** Which run this was; 1 is the first. */
  readonly attempt: number;
  /** The due as it was asked for, in milliseconds since 1970. */
  readonly dueAt: number;
  readonly occurrenceId: string;
  /** In words: the message of what was thrown, or the reason that the handler gave. */
  readonly error: string;
  /** What the handler or its effects threw, with its stack; missing if nothing was thrown. */
  readonly thrown?: unknown;
}

/** A run failed, and the timer is tried again. */
export interface FailedEvent extends OfTimer {
  readonly type: "failed";
}

/** A timer was given up: it is among the dead letters. */
export interface DeadEvent extends OfTimer {
  readonly type: "dead";
  readonly reason: DeadLetter["reason"];
}

/**
 * A function that a built-in kind asks failed in an alarm: it threw, its effects did, or it took too long. What was to
 * happen waits, as the page of the kind says. What fails in a verb is the verb's error, and not told.
 */
export interface HookEvent {
  readonly type: "hook";
  /** As `$ticket_expiry`. */
  readonly kind: string;
  /** The option of the kind, as `onClose`; `deliver` of an outbox. */
  readonly hook: string;
  /** The lease, the id of the ticket or the reservation, the record or the place, the outbox. */
  readonly name: string;
  /** Of an outcome, in its outbox. */
  readonly sequence?: number;
  readonly error: string;
  /** What was thrown, with its stack; missing if nothing was thrown. */
  readonly thrown?: unknown;
}

/** An alarm was served. */
export interface AlarmEvent {
  readonly type: "alarm";
  readonly report: AlarmReport;
  /**
   * How many of `report.failed` and `report.dead` no event of their own tells of: those whose handler did not run,
   * or was not at fault. A failed run of a built-in kind has its event if a hook failed.
   */
  readonly untold: { readonly failed: number; readonly dead: number };
}

/** The alarm could not be looked at behind a call; the next call looks again. */
export interface UnrestoredEvent {
  readonly type: "unrestored";
  readonly error: string;
  readonly thrown: unknown;
}

/**
 * An alarm came, and the `alarm()` of a class that extends `TimerObject` did not serve the timers: it lacks a
 * `super.alarm(info)`. Told once an instance.
 */
export interface UnservedEvent {
  readonly type: "unserved";
}

/** Something that a person may want to know of the timers of an object. */
export type LogEvent = FailedEvent | DeadEvent | HookEvent | AlarmEvent | UnrestoredEvent | UnservedEvent;

/** Takes events. It is called behind the run or the alarm, and whatever it throws is dropped. */
export type Logger = (event: LogEvent) => void | Promise<void>;

/** Most runs of one alarm that are known not to be told twice. */
const TOLD_MAX = 1_000;
const SOON = Promise.resolve();

/** What happens to the timers of one object, told to whoever is to know. */
export class Log {
  readonly #logger: Logger | undefined;
  /** Runs of this alarm that were told: what is rolled back runs again, with the same attempt. */
  readonly #told = new Set<string>();
  #failed = 0;
  #dead = 0;

  constructor(log: Logger | false | undefined) {
    if (log !== undefined && log !== false && typeof log !== "function") {
      throw new DuelineError("invalid", `\`log\` is a function, or \`false\`, not ${inWords(log)}`);
    }
    this.#logger = log === undefined ? toConsole : log === false ? undefined : log;
  }

  /** A run failed; it was the last one if the kind gives timers up behind so many. */
  failed(due: DueTimer, attempts: number, error: string, thrown?: { readonly value: unknown }): void {
    if (due.attempt >= attempts) {
      this.dead(due, "exhausted", error, thrown);
    } else if (this.#isNew(runOf(due))) {
      this.#failed += 1;
      this.#soon({ type: "failed", ...told(due, error, thrown) });
    }
  }

  /** A timer is given up. */
  dead(due: DueTimer, reason: DeadLetter["reason"], error: string, thrown?: { readonly value: unknown }): void {
    if (this.#isNew(runOf(due))) {
      this.#dead += 1;
      this.#soon({ type: "dead", reason, ...told(due, error, thrown) });
    }
  }

  /** A hook of a built-in kind failed. */
  hook({ failsRun, ...about }: About, error: string, thrown?: { readonly value: unknown }): void {
    // Effects that failed in a group are done again alone, behind the same hook asked again.
    const run = `${about.kind} ${about.hook} ${about.name} ${about.sequence ?? ""} ${error}`;
    if (failsRun ? this.#isNew(run) : this.#logger !== undefined) {
      this.#failed += failsRun ? 1 : 0;
      this.#soon({ type: "hook", ...about, error, ...(thrown === undefined ? {} : { thrown: thrown.value }) });
    }
  }

  /** An alarm has been served. */
  alarm(report: AlarmReport): void {
    const untold = {
      failed: Math.max(report.failed - this.#failed, 0),
      dead: Math.max(report.dead - this.#dead, 0),
    };
    this.#tell({ type: "alarm", report, untold });
  }

  /** All runs are over. */
  forget(): void {
    this.#told.clear();
    this.#failed = 0;
    this.#dead = 0;
  }

  unrestored(thrown: unknown): void {
    this.#tell({ type: "unrestored", error: textOf(thrown), thrown });
  }

  unserved(): void {
    this.#tell({ type: "unserved" });
  }

  #isNew(run: string): boolean {
    if (this.#logger === undefined) {
      return false;
    }
    const isNew = !this.#told.has(run);
    if (isNew && this.#told.size < TOLD_MAX) {
      this.#told.add(run);
    }
    return isNew;
  }

  /** Behind the engine's own work, which may be in the middle of a transaction. */
  #soon(event: LogEvent): void {
    void SOON.then(() => this.#tell(event));
  }

  #tell(event: LogEvent): void {
    try {
      const told: unknown = this.#logger?.(event);
      Promise.resolve(told).catch(harmless);
    } catch (thrown) {
      harmless(thrown);
    }
  }
}

function runOf(due: DueTimer): string {
  return `${due.occurrenceId} ${due.attempt}`;
}

function told(due: DueTimer, error: string, thrown: { readonly value: unknown } | undefined): OfTimer {
  return {
    kind: due.kind,
    ...(due.name === undefined ? {} : { name: due.name }),
    attempt: due.attempt,
    dueAt: due.dueAt,
    occurrenceId: due.occurrenceId,
    error,
    ...(thrown === undefined ? {} : { thrown: thrown.value }),
  };
}

/** A log that fails must not take timers along. */
function harmless(thrown: unknown): void {
  try {
    console.warn(`dueline: \`log\` failed: ${line(textOf(thrown))}`);
  } catch {
    // Nobody is left to be told.
  }
}

/** What is told to the console: a line for what went wrong, and none for what went well. */
function toConsole(event: LogEvent): void {
  switch (event.type) {
    case "failed":
      return console.warn(`dueline: ${who(event)} failed, attempt ${event.attempt}: ${line(event.error)}`);
    case "dead":
      return console.error(
        `dueline: ${who(event)} was given up (${event.reason}), attempt ${event.attempt}: ${line(event.error)}`,
      );
    case "hook":
      return console.warn(`dueline: ${hookOf(event)} failed: ${line(event.error)}`);
    case "unrestored":
      return console.warn(`dueline: the alarm could not be looked at; the next call looks again: ${line(event.error)}`);
    case "unserved":
      return console.error(
        "dueline: an alarm came and `alarm()` of the class did not serve the timers: none fires until it calls `super.alarm(info)`",
      );
    case "alarm":
      return alarmToConsole(event);
  }
}

function alarmToConsole({ report, untold }: AlarmEvent): void {
  if (untold.failed > 0) {
    console.warn(`dueline: further runs failed, ${untold.failed} of them; see \`lastError\` of retrying timers`);
  }
  if (untold.dead > 0) {
    console.error(`dueline: further timers were given up, ${untold.dead} of them; see the dead letters`);
  }
  if (report.quarantined > 0) {
    console.error(`dueline: stored rows that do not decode were set aside, ${report.quarantined} of them`);
  }
  if (report.refused > 0) {
    console.error("dueline: the storage refused the timers; they are held back and tried again");
  }
}

function who({ kind, name }: OfTimer): string {
  return name === undefined ? kind : `${kind} ${JSON.stringify(name)}`;
}

function hookOf({ kind, hook, name, sequence }: HookEvent): string {
  const which = sequence === undefined ? "" : `, outcome ${sequence},`;
  return `\`${hook}\` of ${kind} for ${JSON.stringify(name)}${which}`;
}

/** The text on one line. */
function line(text: string): string {
  return text.replace(/\s*[\r\n\u2028\u2029]\s*/g, " ");
}

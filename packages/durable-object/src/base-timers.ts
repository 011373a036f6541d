import { checkAlarmHandler, takeOnce, wakeAgain } from "./alarm-handler.js";
import { dueOf, listOf, nameOf, optionalText, optionalWhole, optionsOf, time, type Known } from "./checks.js";
import { DeadLetters } from "./dead-letters.js";
import type { Engine } from "./engine.js";
import { DuelineError, inWords } from "./errors.js";
import type { ObjectCore as OpenCore } from "./generated/dueline_object.js";
import type { Handlers } from "./handlers.js";
import type { BuiltIn } from "./hooks.js";
import { ObjectHost } from "./host.js";
import { Log } from "./log.js";
import { Opened } from "./opened.js";
import { OwnAlarm } from "./own-alarm.js";
import { coreKind, coreSettings, hostKinds, SETTINGS, type Settings } from "./settings.js";
import { SCHEDULE, scheduleMany, scheduleOver, wantedOf } from "./schedule-many.js";
import { isOfNoTable, isTakenAway, NOTHING_SERVED } from "./taken-away.js";
import type {
  AlarmReport,
  Cancelled,
  KindCounts,
  KindOf,
  ListOptions,
  Page,
  Payloads,
  Schedule,
  Scheduled,
  ScheduleOfKind,
  TimerState,
  TimerView,
  When,
} from "./types.js";
import { kindCounts, timerView, type CoreCounts, type CoreView } from "./views.js";
import type { CoreWanted } from "./wanted.js";
import { weakly } from "./weak-host.js";

/** What the timers of an object are made of. */
export interface TimersOptions<P extends Payloads> extends Settings {
  /** The kinds, by their names; a function is asked behind the object's constructor. */
  readonly handlers: Handlers<P> | (() => Handlers<P>);
  /**
   * The `alarm()` that the object had before: it is called when a time set by {@link BaseTimers.setAlarm}
   * comes, and once for the alarm that was pending when the object adopted this package.
   */
  readonly ownAlarm?: () => void | Promise<void>;
}

const CANCEL: Known<{ readonly ifMatch?: string }> = { ifMatch: true };
const LIST: Known<ListOptions> = { states: true, prefix: true, dueBefore: true, after: true, limit: true };
const PAUSE: Known<{ readonly wait?: boolean }> = { wait: true };
const WHEN: Known<When & { readonly ifMatch?: string }> = { dueAt: true, after: true, ifMatch: true };
const OPTIONS: Known<TimersOptions<Payloads>> = { handlers: true, ownAlarm: true, ...SETTINGS };

/** The timers of one Durable Object, whatever build of the engine runs them. */
export abstract class BaseTimers<P extends Payloads = Payloads, B extends string = never> {
  /** Timers that were given up. */
  readonly deadLetters: DeadLetters<P, B>;
  readonly #ctx: DurableObjectState;
  readonly #engine: Engine;
  readonly #builtIn: () => BuiltIn | undefined;
  readonly #options: TimersOptions<P>;
  readonly #log: Log;
  readonly #ownAlarm: OwnAlarm | undefined;
  #opened: Promise<Opened>;
  /** The same once it is there: a wait for it would cost as much as a verb. */
  #now: Opened | undefined;
  #reopening: Promise<Opened> | undefined;
  #host: ObjectHost | undefined;
  #alarms = 0;
  /** How many alarms this was given. */
  #served = 0;
  #isUnservedTold = false;
  #isRestoring = false;

  /** @internal */
  constructor(ctx: DurableObjectState, options: TimersOptions<P>, engine: Engine, builtIn: () => BuiltIn | undefined = () => undefined) {
    takeOnce(ctx);
    this.#ctx = ctx;
    this.#engine = engine;
    this.#builtIn = builtIn;
    this.#options = optionsOf("the options of the timers", options as TimersOptions<Payloads>, OPTIONS) as TimersOptions<P>;
    this.#log = new Log(options.log);
    this.#ownAlarm = options.ownAlarm === undefined ? undefined : new OwnAlarm(ctx.storage, options.ownAlarm);
    this.deadLetters = new DeadLetters(this.call);
    // Nothing else is let in before the timers are open and the alarm is set.
    this.#opened = ctx.blockConcurrencyWhile(() => this.#openFirst());
    // Whoever waits is told; the platform throws the object away by itself.
    this.#opened.catch(() => undefined);
  }

  /** Schedules a timer. Once the promise is resolved, it is committed and the alarm is set. */
  schedule<K extends KindOf<P>>(kind: K, timer: Schedule<P[K]>): Promise<Scheduled> {
    return this.call((opened) => {
      const wanted = wantedOf(opened.host, { ...optionsOf("a timer", timer as Schedule<unknown>, SCHEDULE), kind });
      return wanted.ifMatch === undefined ? scheduled(opened, wanted) : scheduleOver(opened, wanted);
    });
  }

  /**
   * Schedules up to 1,000 timers in one commit: all of them, or none. What was scheduled comes in their order. Each
   * name stands once among them. An error that one of them causes tells which, in its `refused` and its message.
   */
  scheduleMany(timers: readonly ScheduleOfKind<P>[]): Promise<Scheduled[]> {
    return this.call((opened) => scheduleMany(opened, timers));
  }

  /** Cancels the timer of a name; `undefined` if there is none. Once resolved it is final. */
  async cancel(
    kind: KindOf<P>,
    name: string,
    options: { readonly ifMatch?: string } = {},
  ): Promise<Cancelled | undefined> {
    return this.call(async (opened) => {
      const number = opened.host.ownNumber(kind);
      const of = nameOf(name);
      const ifMatch = optionalText("`ifMatch`", optionsOf("the options", options, CANCEL).ifMatch);
      return (await opened.wait((core) => core.cancel(number, of, ifMatch))) as Cancelled | undefined;
    });
  }

  /** The timer of a name, in whatever state; `undefined` if there is none. */
  async get<K extends KindOf<P>>(kind: K, name: string): Promise<TimerView<K, P[K]> | undefined> {
    return this.call(async (opened) => {
      const number = opened.host.number(kind);
      const of = nameOf(name);
      const found = await opened.wait((core) => core.get(number, of));
      return found === undefined ? undefined : timerView(opened.host, kind, found as CoreView);
    });
  }

  /** One page of the timers of a kind, in the order of their dues, or of their names if `prefix` is given. */
  async list<K extends KindOf<P>>(
    kind: K,
    options: ListOptions = {},
  ): Promise<Page<TimerView<K, P[K]>>> {
    return this.call(async (opened) => {
      const number = opened.host.number(kind);
      const { dueBefore, ...more } = optionsOf("the options", options, LIST);
      const states = more.states === undefined ? undefined : listed(more.states);
      const prefix = optionalText("`prefix`", more.prefix);
      const after = optionalText("`after`", more.after);
      const limit = optionalWhole("limit", more.limit, 1, 1000) ?? 100;
      const before = dueBefore === undefined ? undefined : time("dueBefore", dueBefore);
      const page = (await opened.wait((core) =>
        core.list(number, states, prefix, before, after, limit),
      )) as { readonly timers: readonly CoreView[]; readonly next?: string };
      return {
        items: page.timers.map((view) => timerView<K, P[K]>(opened.host, kind, view)),
        ...(page.next === undefined ? {} : { next: page.next }),
      };
    });
  }

  /** Moves the timer of a name to another due, its payload kept. Throws `not_found` without one. */
  async reschedule(
    kind: KindOf<P>,
    name: string,
    when: When & { readonly ifMatch?: string },
  ): Promise<Scheduled> {
    return this.call(async (opened) => {
      const number = opened.host.ownNumber(kind);
      const of = nameOf(name);
      const dueAt = dueOf(optionsOf("when it is due", when, WHEN));
      const ifMatch = optionalText("`ifMatch`", when.ifMatch);
      return (await opened.wait((core) => core.reschedule(number, of, dueAt, ifMatch))) as Scheduled;
    });
  }

  /**
   * Pauses a kind: its timers wait, whatever their dues. With `wait` behind the runs that are under way.
   * Whether it was not paused before.
   */
  async pause(kind: KindOf<P> | B, options: { readonly wait?: boolean } = {}): Promise<boolean> {
    return this.call(async (opened) => {
      const number = opened.host.number(kind);
      const isWaiting = optionsOf("the options", options, PAUSE).wait === true;
      return (await opened.wait((core) => core.pause(number, isWaiting))) as boolean;
    });
  }

  /** Lets a paused kind go on. Whether it was paused. */
  async resume(kind: KindOf<P> | B): Promise<boolean> {
    return this.call(async (opened) => {
      const number = opened.host.number(kind);
      return (await opened.wait((core) => core.resume(number))) as boolean;
    });
  }

  /** The kinds that are paused. */
  async paused(): Promise<string[]> {
    return this.call(async (opened) => {
      const numbers = (await opened.wait((core) => core.paused())) as number[];
      return numbers.map((number) => opened.host.nameOf(number));
    });
  }

  /**
   * How many timers and dead letters there are of each kind, up to 1,000 of each: kinds that this version has
   * no handler for too, so that a name that was lost by a deployment is seen. Reads what it counts.
   */
  async counts(): Promise<KindCounts[]> {
    return this.call(async (opened) => {
      const counts = (await opened.wait((core) => core.counts())) as CoreCounts[];
      return counts.map((of) => kindCounts(opened.host, of));
    });
  }

  /**
   * Serves the object's alarm: everything that is due, and the alarm for what is next. Call it from
   * `alarm()`, and let its error out: the platform tries such an alarm again.
   */
  async alarm(info?: AlarmInvocationInfo): Promise<AlarmReport> {
    this.#served += 1;
    const retryCount = Number(info?.retryCount ?? 0);
    const isRetry = info?.isRetry === true;
    const scheduledAt = info?.scheduledTime === undefined ? undefined : Number(info.scheduledTime);
    const opened = await this.#whenOpen();
    this.#alarms += 1;
    try {
      const isOfTimers = (): boolean => scheduledAt !== undefined && opened.isAlarmSound(scheduledAt);
      await this.#ownAlarm?.adoptServed(scheduledAt, isOfTimers, () => this.#scheduleOwn(opened, Date.now()));
      const report = await this.#serve(opened, retryCount, isRetry, scheduledAt);
      this.#log.alarm(report);
      return report;
    } finally {
      this.#alarms -= 1;
      if (this.#alarms === 0) {
        opened.host.forgetEffects();
        this.#log.forget();
      }
    }
  }

  /** An alarm that finds no tables, or whose handler has taken them away, has served all that there is. */
  async #serve(opened: Opened, retryCount: number, isRetry: boolean, scheduledAt: number | undefined): Promise<AlarmReport> {
    try {
      return (await opened.wait((core) => core.alarm(retryCount, isRetry, scheduledAt))) as AlarmReport;
    } catch (thrown) {
      if (isOfNoTable(thrown) && isTakenAway(this.#ctx.storage)) {
        return NOTHING_SERVED;
      }
      throw thrown;
    }
  }

  /**
   * Calls an `alarm()` of the application, which is told of once if it does not serve the timers.
   *
   * @internal
   */
  async watched(alarm: () => Promise<void>): Promise<void> {
    const served = this.#served;
    await alarm();
    if (this.#served === served && !this.#isUnservedTold) {
      this.#isUnservedTold = true;
      this.#log.unserved();
    }
  }

  /** In the place of `ctx.storage.setAlarm`, for an object with an `ownAlarm`. */
  async setAlarm(at: number | Date): Promise<void> {
    await this.call((opened) => {
      this.#ownNumber(opened);
      return this.#scheduleOwn(opened, time("the alarm", at));
    });
  }

  /** In the place of `ctx.storage.getAlarm`. */
  async getAlarm(): Promise<number | null> {
    return this.call(async (opened) => {
      const number = this.#ownNumber(opened);
      const found = await opened.wait((core) => core.get(number, OwnAlarm.NAME));
      return (found as CoreView | undefined)?.nextAt ?? null;
    });
  }

  /** In the place of `ctx.storage.deleteAlarm`. */
  async deleteAlarm(): Promise<void> {
    await this.call(async (opened) => {
      const number = this.#ownNumber(opened);
      await opened.wait((core) => core.cancel(number, OwnAlarm.NAME, undefined));
    });
  }

  /** The number of the kind that stands for the object's own alarm. */
  #ownNumber(opened: Opened): number {
    if (this.#ownAlarm === undefined) {
      throw new DuelineError(
        "unknown_kind",
        "`setAlarm`, `getAlarm` and `deleteAlarm` are for an object with an `ownAlarm`: a method of that name of a `TimerObject`, or an option of `Timers`",
      );
    }
    return opened.host.number(OwnAlarm.KIND);
  }

  async #scheduleOwn(opened: Opened, dueAt: number): Promise<void> {
    const wanted = opened.host.wanted({ kind: OwnAlarm.KIND, name: OwnAlarm.NAME, dueAt, payload: undefined });
    await scheduled(opened, wanted);
  }

  /** A verb: with open timers, outside effects, and with a look at the alarm behind it. */
  protected readonly call = async <T>(verb: (opened: Opened) => Promise<T>): Promise<T> => {
    // Asked before anything is awaited: behind a wait the effects are over.
    if (this.#host?.isInEffects === true) {
      throw new DuelineError(
        "in_effects",
        "effects run inside a transaction: return `schedule` or `cancel` beside them",
      );
    }
    const now = this.#now;
    const opened = now === undefined || now.isLost ? await this.#whenOpen() : now;
    try {
      return await verb(opened);
    } catch (thrown) {
      if (!this.#isTakenAway(opened, thrown)) {
        throw thrown;
      }
      return await verb(await this.#whenOpen());
    } finally {
      this.#restore(this.#now ?? opened);
    }
  };

  /**
   * Whether a verb has failed because the tables are gone, and can have them made anew. Not while an alarm is served:
   * the numbers of its kinds may be those of others in the new tables.
   */
  #isTakenAway(opened: Opened, thrown: unknown): boolean {
    if (!isOfNoTable(thrown)) {
      return false;
    }
    if (this.#alarms === 0 && isTakenAway(this.#ctx.storage)) {
      opened.isTakenAway = true;
    }
    // Or another call has found it so.
    return opened.isTakenAway;
  }

  /** Looks whether the alarm is missing or late. It costs a read of the alarm, for which nobody waits. */
  #restore(opened: Opened): void {
    if (this.#isRestoring || this.#alarms > 0 || opened.isLost) {
      return;
    }
    this.#isRestoring = true;
    void this.#look(opened);
  }

  async #look(opened: Opened): Promise<void> {
    try {
      const found = await this.#ctx.storage.getAlarm();
      // Nearly always all is well, and that is to be seen at little cost.
      if (!opened.isAlarmSound(found)) {
        await opened.wait((core) => core.restore());
      }
    } catch (thrown) {
      if (!isOfNoTable(thrown)) {
        this.#log.unrestored(thrown);
      }
    } finally {
      this.#isRestoring = false;
    }
  }

  async #whenOpen(): Promise<Opened> {
    const opened = await this.#opened;
    if (!opened.isLost) {
      return opened;
    }
    // One call opens the timers anew, the others wait for it; if it fails, the next call tries again.
    this.#reopening ??= this.#reopen().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  async #reopen(): Promise<Opened> {
    const opened = await this.#open(this.#alarms > 0, false);
    this.#opened = Promise.resolve(opened);
    return opened;
  }

  async #openFirst(): Promise<Opened> {
    try {
      return await this.#open(false, true);
    } catch (thrown) {
      await wakeAgain(this.#ctx);
      throw thrown;
    }
  }

  async #open(isAfterTrap: boolean, isFirst: boolean): Promise<Opened> {
    // Behind the object's constructor, so that its fields are there for the handlers.
    await Promise.resolve();
    const { handlers } = this.#options;
    const kinds = hostKinds(typeof handlers === "function" ? handlers() : handlers);
    if (this.#ownAlarm !== undefined) {
      kinds.push(this.#ownAlarm.kind());
    }
    const instance = this.#engine.current;
    const builtIn = this.#builtIn();
    const host = new ObjectHost(instance, this.#ctx.id.toString(), builtIn, this.#log);
    this.#host = host;
    // Looked over here: what throws in a call into the module is taken for a trap of it, in every object of the isolate.
    const wanted = kinds.map(coreKind);
    const settings = { ...coreSettings(this.#options, isAfterTrap), builtIns: builtIn?.settings };
    // Whatever alarm there is later is that of the timers.
    const adopted = isFirst ? this.#ownAlarm : undefined;
    if (isFirst && adopted === undefined) {
      // Whoever adopts this package with an alarm has an `alarm()`, and may be in the middle of it.
      await checkAlarmHandler(this.#ctx);
    }
    const pending = await adopted?.pending();
    const [storage, called] = [this.#ctx.storage, weakly(host)];
    const { ObjectCore } = this.#engine.module;
    const core = (await instance.wait(() => ObjectCore.open(storage, called, wanted, settings))) as OpenCore;
    host.know(instance.enter(() => core.kindNumbers()) as Record<string, number>, kinds);
    const opened = new Opened(instance, core, host);
    await adopted?.adopt(pending, (at) => this.#scheduleOwn(opened, at));
    this.#now = opened;
    return opened;
  }
}

const STATES: readonly TimerState[] = ["pending", "retrying", "claimed", "dead"];

/** States as the core reads them. */
function listed(states: readonly TimerState[]): string {
  return listOf("states", states, 1, STATES.length)
    .map((state) => {
      if (!STATES.includes(state)) {
        throw new DuelineError("invalid", `a state is ${STATES.join(", ")}, not ${inWords(state)}`);
      }
      return state;
    })
    .join();
}

/** Schedules a timer. Its parts are handed over one by one: an object would cost a call for each of them. */
function scheduled(opened: Opened, wanted: CoreWanted): Promise<Scheduled> {
  const { kind, reference, isNamed, dueAt, payload, policy } = wanted;
  return opened.wait((core) => core.schedule(kind, reference, isNamed, dueAt, payload, policy)) as Promise<Scheduled>;
}

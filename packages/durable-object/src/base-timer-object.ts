import { DurableObject } from "cloudflare:workers";
import { hasAlarmHandler } from "./alarm-handler.js";
import { namesOf } from "./checks.js";
import type { BaseTimers, TimersOptions } from "./base-timers.js";
import type { DeadLetters } from "./dead-letters.js";
import type { Handlers } from "./handlers.js";
import type { Settings } from "./settings.js";
import type {
  Cancelled,
  KindOf,
  ListOptions,
  Page,
  Payloads,
  Schedule,
  Scheduled,
  ScheduleOfKind,
  TimerView,
  When,
} from "./types.js";

/** A Durable Object with timers, whatever build of the engine runs them. */
export abstract class BaseTimerObject<P extends Payloads, Env = unknown, B extends string = never> extends DurableObject<Env> {
  /** The same verbs, for code inside the object. */
  protected abstract readonly timers: BaseTimers<P, B>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    hasAlarmHandler(ctx);
    const { alarm } = this;
    if (alarm !== BaseTimerObject.prototype.alarm) {
      // One that forgets the timers is told of.
      const watched = (info?: AlarmInvocationInfo): Promise<void> => this.timers.watched(() => alarm.call(this, info));
      Object.defineProperty(this, "alarm", { value: watched, configurable: true, writable: true });
    }
  }

  /** What the timers are made of, as the methods below give it. */
  protected timersOptions(): TimersOptions<P> {
    return {
      handlers: () => this.handlers(),
      ...namesOf("`settings()`", this.settings()),
      ...(this.ownAlarm === undefined ? {} : { ownAlarm: () => this.ownAlarm?.() }),
    };
  }

  /** The kinds of this object, by their names. Called behind the constructor. */
  protected abstract handlers(): Handlers<P>;

  /** The `alarm()` that the object had before; see {@link BaseTimers.setAlarm}. */
  protected ownAlarm?(): void | Promise<void>;

  /** How the timers are run. Called by the constructor of this class, before the fields of yours are there. */
  protected settings(): Settings {
    return {};
  }

  /** Serves the timers. A class that overrides it calls `super.alarm(info)`: else no timer fires. */
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }

  /** See {@link BaseTimers.schedule}. */
  async schedule<K extends KindOf<P>>(kind: K, timer: Schedule<P[K]>): Promise<Scheduled> {
    return this.timers.schedule(kind, timer);
  }

  /** See {@link BaseTimers.scheduleMany}. */
  async scheduleMany(timers: readonly ScheduleOfKind<P>[]): Promise<Scheduled[]> {
    return this.timers.scheduleMany(timers);
  }

  /** See {@link BaseTimers.cancel}. */
  async cancel(
    kind: KindOf<P>,
    name: string,
    options: { readonly ifMatch?: string } = {},
  ): Promise<Cancelled | undefined> {
    return this.timers.cancel(kind, name, options);
  }

  /** See {@link BaseTimers.get}. */
  async get<K extends KindOf<P>>(kind: K, name: string): Promise<TimerView<K, P[K]> | undefined> {
    return this.timers.get(kind, name);
  }

  /** See {@link BaseTimers.list}. */
  async list<K extends KindOf<P>>(
    kind: K,
    options: ListOptions = {},
  ): Promise<Page<TimerView<K, P[K]>>> {
    return this.timers.list(kind, options);
  }

  /** See {@link BaseTimers.reschedule}. */
  async reschedule(
    kind: KindOf<P>,
    name: string,
    when: When & { readonly ifMatch?: string },
  ): Promise<Scheduled> {
    return this.timers.reschedule(kind, name, when);
  }

  /** See {@link BaseTimers.pause}. */
  async pause(kind: KindOf<P> | B, options: { readonly wait?: boolean } = {}): Promise<boolean> {
    return this.timers.pause(kind, options);
  }

  /** See {@link BaseTimers.resume}. */
  async resume(kind: KindOf<P> | B): Promise<boolean> {
    return this.timers.resume(kind);
  }

  /** Timers that were given up. */
  protected get deadLetters(): DeadLetters<P, B> {
    return this.timers.deadLetters;
  }
}

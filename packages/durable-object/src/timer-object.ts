import { DurableObject } from "cloudflare:workers";
import type { DeadLetters } from "./dead-letters.js";
import type { Handlers } from "./handlers.js";
import type { Settings } from "./settings.js";
import { Timers } from "./timers.js";
import type {
  Cancelled,
  KindOf,
  ListOptions,
  Page,
  Payloads,
  Schedule,
  Scheduled,
  TimerView,
  When,
} from "./types.js";

/**
 * A Durable Object with timers.
 *
 * ```ts
 * type Kinds = { expire: { seat: string } };
 *
 * export class SeatHold extends TimerObject<Kinds, Env> {
 *   handlers(): Handlers<Kinds> {
 *     return {
 *       expire: (timer) => () => {
 *         this.ctx.storage.sql.exec("DELETE FROM holds WHERE seat = ?", timer.payload.seat);
 *       },
 *     };
 *   }
 *   async hold(seat: string) {
 *     this.ctx.storage.sql.exec("INSERT INTO holds (seat) VALUES (?)", seat);
 *     await this.schedule("expire", { name: seat, after: 10 * 60_000, payload: { seat } });
 *   }
 * }
 * ```
 *
 * The verbs can be called over RPC too. A class that overrides `alarm` calls `super.alarm(info)`.
 */
export abstract class TimerObject<P extends Payloads, Env = unknown> extends DurableObject<Env> {
  /** The same verbs, for code inside the object. */
  protected readonly timers: Timers<P>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.timers = new Timers<P>(ctx, {
      handlers: () => this.handlers(),
      ...this.settings(),
      ...(this.ownAlarm === undefined ? {} : { ownAlarm: () => this.ownAlarm?.() }),
    });
  }

  /** The kinds of this object, by their names. Called behind the constructor. */
  protected abstract handlers(): Handlers<P>;

  /** The `alarm()` that the object had before; see {@link Timers.setAlarm}. */
  protected ownAlarm?(): void | Promise<void>;

  /** How the timers are run. Called by the constructor of this class, before the fields of yours are there. */
  protected settings(): Settings {
    return {};
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }

  /** See {@link Timers.schedule}. */
  async schedule<K extends KindOf<P>>(kind: K, timer: Schedule<P[K]>): Promise<Scheduled> {
    return this.timers.schedule(kind, timer);
  }

  /** See {@link Timers.cancel}. */
  async cancel(
    kind: KindOf<P>,
    name: string,
    options: { readonly ifMatch?: string } = {},
  ): Promise<Cancelled | undefined> {
    return this.timers.cancel(kind, name, options);
  }

  /** See {@link Timers.get}. */
  async get<K extends KindOf<P>>(kind: K, name: string): Promise<TimerView<K, P[K]> | undefined> {
    return this.timers.get(kind, name);
  }

  /** See {@link Timers.list}. */
  async list<K extends KindOf<P>>(
    kind: K,
    options: ListOptions = {},
  ): Promise<Page<TimerView<K, P[K]>>> {
    return this.timers.list(kind, options);
  }

  /** See {@link Timers.reschedule}. */
  async reschedule(
    kind: KindOf<P>,
    name: string,
    when: When & { readonly ifMatch?: string },
  ): Promise<Scheduled> {
    return this.timers.reschedule(kind, name, when);
  }

  /** See {@link Timers.pause}. */
  async pause(kind: KindOf<P>, options: { readonly wait?: boolean } = {}): Promise<boolean> {
    return this.timers.pause(kind, options);
  }

  /** See {@link Timers.resume}. */
  async resume(kind: KindOf<P>): Promise<boolean> {
    return this.timers.resume(kind);
  }

  /** Timers that were given up. */
  protected get deadLetters(): DeadLetters<P> {
    return this.timers.deadLetters;
  }
}

import { BaseTimers, type TimersOptions } from "./base-timers.js";
import { Engine } from "./engine.js";
import * as module from "./generated/dueline_object.js";
import type { JsonPayloads, Payloads } from "./types.js";

const engine = new Engine(module);

/**
 * The timers of one Durable Object, for a class that composes them. Make them in the constructor, and pass
 * the alarm on:
 *
 * ```ts
 * export class Room extends DurableObject {
 *   readonly timers = new Timers<{ close: { reason: string } }>(this.ctx, {
 *     handlers: { close: (timer) => () => this.close(timer.payload.reason) },
 *   });
 *   override async alarm(info?: AlarmInvocationInfo) {
 *     await this.timers.alarm(info);
 *   }
 * }
 * ```
 *
 * The object needs a SQLite database. The tables are called `dueline_...`; every other is the object's own.
 * The object's alarm belongs to the timers: {@link BaseTimers.setAlarm} stands in for the storage's.
 */
export class Timers<P extends Payloads & JsonPayloads<P> = Payloads> extends BaseTimers<P> {
  constructor(ctx: DurableObjectState, options: TimersOptions<P>) {
    super(ctx, options, engine);
  }
}

import { BaseTimerObject } from "./base-timer-object.js";
import { Timers } from "./timers.js";
import type { JsonPayloads, Payloads } from "./types.js";

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
export abstract class TimerObject<P extends Payloads & JsonPayloads<P>, Env = unknown> extends BaseTimerObject<P, Env> {
  protected override readonly timers: Timers<P>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.timers = new Timers<P>(ctx, this.timersOptions());
  }
}

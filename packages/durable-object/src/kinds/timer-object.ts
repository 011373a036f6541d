import { BaseTimerObject } from "../base-timer-object.js";
import type { JsonPayloads, Payloads } from "../types.js";
import type { BuiltInKind, BuiltIns } from "./built-ins.js";
import { Timers } from "./timers.js";

/** As `TimerObject` of the package's main entry, with the built-in kinds beside one's own. */
export abstract class TimerObject<P extends Payloads & JsonPayloads<P>, Env = unknown> extends BaseTimerObject<P, Env, BuiltInKind> {
  protected override readonly timers: Timers<P>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.timers = new Timers<P>(ctx, { ...this.timersOptions(), builtIns: () => this.builtIns() });
  }

  /**
   * The built-in kinds of this object. Asked once, when the fields of your class are there: behind its constructor,
   * unless that calls a verb of them.
   */
  protected abstract builtIns(): BuiltIns;
}

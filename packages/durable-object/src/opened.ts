import type { ObjectHost } from "./host.js";
import type { ObjectCore } from "./generated/dueline_object.js";
import type { Instance } from "./instance.js";

/** The timers of one object, open in one instance of the module. */
export class Opened {
  /** Whether its tables were found gone. */
  isTakenAway = false;

  constructor(
    readonly instance: Instance,
    readonly core: ObjectCore,
    readonly host: ObjectHost,
  ) {}

  /** Whether the timers are to be opened anew: the instance has been replaced, or the tables are gone. */
  get isLost(): boolean {
    return this.isTakenAway || this.instance.isLost;
  }

  /** Whether the alarm that the platform has just told needs no closer look. */
  isAlarmSound(found: number | null): boolean {
    return this.instance.enter(() => this.core.isAlarmSound(found ?? undefined));
  }

  /** Calls the core and waits for what it promises. */
  wait(call: (core: ObjectCore) => Promise<unknown>): Promise<unknown> {
    return this.instance.wait(() => call(this.core));
  }
}

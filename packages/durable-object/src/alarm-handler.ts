import { DuelineError, inWords, textOf } from "./errors.js";
import { hasTables } from "./own-alarm.js";

/** Objects whose class has an `alarm()`, which is known without asking. */
const handled = new WeakSet<DurableObjectState>();
/** Objects that have their timers. */
const taken = new WeakSet<DurableObjectState>();
const PROBE_MS = 3_600_000;
/** When an object that could not be opened is woken again. */
const AGAIN_MS = 60_000;

/** Takes note that the class of an object has an `alarm()`. */
export function hasAlarmHandler(ctx: DurableObjectState): void {
  handled.add(ctx);
}

/** An object has its timers once: two would fire each other's. */
export function takeOnce(ctx: DurableObjectState): void {
  const given = ctx as Partial<DurableObjectState> | null | undefined;
  if (typeof given !== "object" || typeof given?.blockConcurrencyWhile !== "function") {
    throw new DuelineError("invalid", `the first argument of \`Timers\` is the object's \`ctx\`, not ${inWords(ctx)}`);
  }
  if (taken.has(ctx)) {
    throw new DuelineError("invalid", "this object has its timers already: make one `Timers` in its constructor and use that");
  }
  taken.add(ctx);
}

/**
 * Refuses an object whose class has no `alarm()`: the platform sets no alarm for it, and says so only behind the
 * commit of the timer that needs it. Looked at once in an object's life, before its tables are made, by an alarm that
 * is set and deleted.
 */
export async function checkAlarmHandler(ctx: DurableObjectState): Promise<void> {
  const { storage } = ctx;
  if (handled.has(ctx) || (await storage.getAlarm()) !== null || hasTables(storage)) {
    return;
  }
  try {
    await storage.setAlarm(Date.now() + PROBE_MS);
  } catch (cause) {
    if (!/\balarm\(\)/.test(textOf(cause))) {
      // A storage that refuses is asked again.
      throw cause;
    }
    throw new DuelineError(
      "invalid",
      "the object's class has no `alarm()`, without which no timer fires. Add: async alarm(info) { await this.timers.alarm(info); }",
      { cause },
    );
  }
  await storage.deleteAlarm();
}

/**
 * Has an object that could not be opened woken again, if timers wait in it. The platform tries an alarm some minutes
 * long, and a version that cannot be opened may be deployed for longer: then its timers would wait for a request.
 */
export async function wakeAgain({ storage }: DurableObjectState): Promise<void> {
  try {
    if (storage.sql.exec("SELECT 1 FROM dueline_wake LIMIT 1").toArray().length === 0) {
      return;
    }
    const found = await storage.getAlarm();
    if (found === null || found <= Date.now()) {
      await storage.setAlarm(Date.now() + AGAIN_MS);
      // What is not durable goes with the object.
      await storage.sync();
    }
  } catch {
    // What the opening has thrown says more.
  }
}

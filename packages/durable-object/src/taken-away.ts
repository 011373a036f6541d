import { DuelineError, NO_TABLE } from "./errors.js";
import { hasTables } from "./own-alarm.js";
import type { AlarmReport } from "./types.js";

/** Whether something was thrown because the tables were not there, as behind `deleteAll()`: then nothing was written. */
export function isOfNoTable(thrown: unknown): boolean {
  try {
    return thrown instanceof DuelineError && NO_TABLE.test(thrown.message);
  } catch {
    // What the application threw may not be asked for its class.
    return false;
  }
}

/** Whether the tables of an object were taken away, all of them. */
export function isTakenAway(storage: DurableObjectStorage): boolean {
  try {
    return !hasTables(storage);
  } catch {
    // What cannot be looked at is told by what was thrown before.
    return false;
  }
}

/** The report of an alarm that has found nothing to be served. */
export const NOTHING_SERVED: AlarmReport = {
  ticks: 0,
  fired: 0,
  rescheduled: 0,
  failed: 0,
  dead: 0,
  claimed: 0,
  quarantined: 0,
  refused: 0,
  stoppedOnBudget: false,
  worstLatenessMs: 0,
};

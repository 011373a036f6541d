/**
 * Tests of your own objects with a virtual clock, in plain Node: the real engine, real SQLite (`sql.js`,
 * which you install beside this package), an alarm as the platform's, and a time that moves when you say so.
 *
 * ```sh
 * node --import @dueline/durable-object/testing/register --test
 * ```
 *
 * @module
 */
export { TestClock, type TestClockOptions } from "./clock.js";
export { TestObject, type TestObjectOptions } from "./object.js";
export type { ServedAlarm } from "./alarm.js";

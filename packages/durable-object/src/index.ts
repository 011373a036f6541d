/**
 * Durable timers inside a Cloudflare Durable Object.
 *
 * @module
 */
export * from "./common.js";
export type { TimersOptions } from "./base-timers.js";
export { TimerObject } from "./timer-object.js";
export { Timers } from "./timers.js";

// What both entries of the package have in common.
export type { BaseTimerObject } from "./base-timer-object.js";
export type { BaseTimers } from "./base-timers.js";
export { codeOf, DuelineError, type DuelineErrorCode, type RefusedTimer } from "./errors.js";
export {
  detached,
  type Detached,
  type DueTimer,
  type Handler,
  type Handlers,
  type Inline,
  type Kind,
  type KindOptions,
  type Retry,
  type Returned,
  type Signalled,
} from "./handlers.js";
export {
  dead,
  done,
  reschedule,
  retry,
  type CancelWith,
  type Effects,
  type FollowUp,
  type Outcome,
  type Together,
} from "./outcomes.js";
export type { DeadLetterPlace, DeadLetters } from "./dead-letters.js";
export type { AlarmEvent, DeadEvent, FailedEvent, HookEvent, LogEvent, Logger, UnrestoredEvent, UnservedEvent } from "./log.js";
export type { Settings } from "./settings.js";
export type {
  AlarmReport,
  Cancelled,
  DeadLetter,
  KindCounts,
  JsonPayloads,
  KindOf,
  ListOptions,
  Naming,
  Page,
  PayloadOf,
  Payloads,
  Policy,
  Schedule,
  Scheduled,
  ScheduleOfKind,
  TimerState,
  TimerView,
  When,
} from "./types.js";

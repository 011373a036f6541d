/** The payload of each kind of an object, by the kind's name. */
export type Payloads = Record<string, unknown>;

/**
 * Payloads that come back as they were given, so that their types hold: each is itself, and what JSON would make
 * another thing of is the reason. `TimerObject` and `Timers` ask it of their kinds: `P extends Payloads & JsonPayloads<P>`.
 */
export type JsonPayloads<P> = { readonly [K in keyof P]: PayloadInJson<P[K]> };

/** Bytes are a payload of their own. */
type PayloadInJson<T> = IsUnknown<T> extends true ? T : T extends ArrayBuffer | ArrayBufferView ? T : InJson<T>;

type IsUnknown<T> = unknown extends T ? true : false;

type InJson<T> =
  IsUnknown<T> extends true
    ? T
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends bigint
        ? "a bigint has no JSON form: use a number, or a string"
        : T extends symbol
          ? "a symbol has no JSON form"
          : T extends (...args: never) => unknown
            ? "a function has no JSON form, nor has an object of a class with methods"
            : T extends Date
              ? "a Date comes back as a string: use its milliseconds, a number"
              : T extends ReadonlyMap<never, unknown> | ReadonlySet<unknown>
                ? "a Map or a Set comes back as an empty object: use a list"
                : T extends ArrayBuffer | ArrayBufferView
                  ? "bytes are a payload of their own, not a part of one: use a string in base64"
                  : T extends readonly (infer Item)[]
                    ? readonly InJson<Item>[]
                    : { readonly [K in keyof T]: InJson<T[K]> };

/** The names of kinds. */
export type KindOf<P extends Payloads> = keyof P & string;

/** When: a time in milliseconds since 1970 or a `Date`, or a span from now in milliseconds. */
export type When =
  | { readonly dueAt: number | Date; readonly after?: never }
  | { readonly after: number; readonly dueAt?: never };

/**
 * What becomes of a name that is scheduled already. `replace`, the default: the new timer takes its
 * place. `keepEarliest`: the earlier of both dues, the new payload. `ifAbsent`: nothing is written.
 */
export type Policy = "replace" | "keepEarliest" | "ifAbsent";

/** A timer to be scheduled. */
export type Schedule<T> = When & Naming & PayloadOf<T>;

/** A timer to be scheduled with others: its kind beside what `schedule` takes. */
export type ScheduleOfKind<P extends Payloads> = {
  [K in KindOf<P>]: { readonly kind: K } & Schedule<P[K]>;
}[KindOf<P>];

/** The name of a timer, and what becomes of the one that has it. */
export type Naming =
  | {
      /**
       * Unique within the kind, 1 to 512 bytes of UTF-8: a timer with a name can be read, moved, replaced and
       * cancelled. One without a name just fires.
       */
      readonly name?: string;
      readonly policy?: never;
      readonly ifMatch?: never;
    }
  | {
      readonly name: string;
      readonly policy?: Policy;
      /** Replaces the timer of this name only while it has this generation. */
      readonly ifMatch?: string;
    };

/** The payload may be left out where `undefined` is one. */
export type PayloadOf<T> = undefined extends T ? { readonly payload?: T } : { readonly payload: T };

/** `pending`, waits for its due; `retrying`, for its next attempt; `claimed`, a call may be under way; `dead`. */
export type TimerState = "pending" | "retrying" | "claimed" | "dead";

/** What was scheduled. */
export interface Scheduled {
  /** Tells one scheduling of a name from the next: an ETag for `ifMatch`. */
  readonly generation: string;
  /** In milliseconds since 1970. */
  readonly dueAt: number;
  readonly state: TimerState;
  readonly outcome: "created" | "replaced" | "moved" | "kept";
}

/** A timer as it is stored. */
export interface TimerView<K extends string = string, T = unknown> {
  readonly kind: K;
  /** Without one the timer is anonymous. */
  readonly name?: string;
  /** The due as it was asked for, in milliseconds since 1970. */
  readonly dueAt: number;
  /** When it is looked at next: its due, its next attempt, or the end of its claim. */
  readonly nextAt: number;
  readonly state: TimerState;
  /** How many runs have failed. */
  readonly attempt: number;
  readonly generation: string;
  readonly payload: T;
  readonly lastError?: string;
  readonly lastErrorAt?: number;
}

/** A timer that was given up. */
export interface DeadLetter<K extends string = string, T = unknown> {
  /** For `requeue` and `purge`. */
  readonly id: string;
  readonly kind: K;
  readonly name?: string;
  /** `exhausted`: its attempts; `handler`: the handler said so; `undecodable`: its payload. */
  readonly reason: "exhausted" | "handler" | "undecodable";
  readonly deadAt: number;
  readonly dueAt: number;
  readonly attempt: number;
  readonly generation: string;
  /** `undefined` if it does not decode. */
  readonly payload: T | undefined;
  readonly lastError?: string;
  readonly lastErrorAt?: number;
}

/** A page; `next` is where to go on and is missing at the end. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

/** Which timers of a kind to list. */
export interface ListOptions {
  readonly states?: readonly TimerState[];
  /** Only named timers whose names begin like this, in the order of the names. */
  readonly prefix?: string;
  /** Only timers whose `nextAt` is before this, in milliseconds since 1970. */
  readonly dueBefore?: number | Date;
  /** `next` of the page before. */
  readonly after?: string;
  /** 1 to 1,000; 100 without it. */
  readonly limit?: number;
}

/** What there is of one kind; counting stops at 1,000. */
export interface KindCounts {
  /** Its name; `#` and its number for rows whose kind was never named here, `#0` for damaged ones. */
  readonly kind: string;
  /** Whether this version of the object has a handler for it. Without one its timers wait. */
  readonly isKnown: boolean;
  /** Timers that are not dead. */
  readonly timers: number;
  /** Whether there are more than were counted. */
  readonly hasMoreTimers: boolean;
  /** Of the counted timers those that have failed and wait for their next attempt. */
  readonly retrying: number;
  /** Of the counted timers those whose calls may be under way. */
  readonly claimed: number;
  /** Dead letters, those whose payloads do not decode among them. */
  readonly dead: number;
  readonly hasMoreDead: boolean;
  /** When its first timer is looked at; missing without timers. */
  readonly nextAt?: number;
  /** Since when it is paused; missing if it is not. */
  readonly pausedSince?: number;
}

/** What was cancelled. */
export interface Cancelled {
  /** What it was doing. What a call under way brings back is dropped. */
  readonly state: TimerState;
  readonly generation: string;
}

/** What one alarm did. */
export interface AlarmReport {
  readonly ticks: number;
  readonly fired: number;
  readonly rescheduled: number;
  readonly failed: number;
  readonly dead: number;
  readonly claimed: number;
  readonly quarantined: number;
  /** How often the storage refused the timers, which are then held back for 1 to 60 s. */
  readonly refused: number;
  /** Whether a budget left due timers for the next alarm. */
  readonly stoppedOnBudget: boolean;
  readonly worstLatenessMs: number;
  /** In milliseconds since 1970; missing if nothing is pending. */
  readonly nextAlarmAt?: number;
}

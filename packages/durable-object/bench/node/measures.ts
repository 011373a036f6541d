// What is measured, each on a fresh object of one side.
import { percentile } from "../../test/node/figures.js";
import { until, type ObjectClient } from "../../test/node/workerd.js";

/** How much of each. */
export interface Size {
  readonly rounds: number;
  readonly single: number;
  readonly requests: number;
  /** Scheduled in one request, and then a backlog. */
  readonly many: number;
  /** Scheduled in calls of `scheduleMany`. */
  readonly together: number;
  readonly steady: number;
}

export const FULL: Size = { rounds: 7, single: 500, requests: 600, many: 5_000, together: 10_000, steady: 1_500 };
/** Enough to see that everything still runs. */
export const TINY: Size = { rounds: 1, single: 20, requests: 20, many: 200, together: 1_000, steady: 50 };

/** One figure: what it is called, and whether more of it is better. */
export interface Measure {
  readonly name: string;
  readonly unit: string;
  readonly isRate: boolean;
  /** Whether a ratio of it says something: those of lateness are of a few milliseconds. */
  readonly isCompared: boolean;
}

/** The figures of one measurement. */
export type Figures = readonly number[];

export interface Measurement {
  readonly measures: readonly Measure[];
  readonly run: (object: ObjectClient, size: Size, processorMs: () => number) => Promise<Figures>;
}

const rate = (name: string): Measure => ({ name, unit: "/s", isRate: true, isCompared: true });
const lateness = (name: string): Measure => ({ name, unit: "ms", isRate: false, isCompared: false });
const processor = (name: string): Measure => ({ name, unit: "us", isRate: false, isCompared: true });

/** Connections of the client that schedules one timer with each request. */
const CONNECTIONS = 16;
/** Timers of one call of `scheduleMany`. */
const TOGETHER = 1_000;
const DAY_MS = 86_400_000;
/** A backlog is overdue by this, or by up to a minute less. */
const OVERDUE_MS = 3_600_000;
const STEADY_EVERY_MS = 2;

export const MEASUREMENTS: readonly Measurement[] = [
  { measures: [rate("schedules, anonymous, each durable before the next")], run: single(0) },
  { measures: [rate("schedules, named, each durable before the next")], run: single(1) },
  { measures: [rate(`schedules, one a request, ${CONNECTIONS} connections`)], run: requests },
  {
    measures: [
      rate("schedules, many in one request"),
      rate("fires of a backlog"),
      processor("processor time of a schedule, many in one request"),
      processor("processor time of a fire of a backlog"),
    ],
    run: backlog,
  },
  {
    measures: [
      rate(`schedules, one scheduleMany of ${TOGETHER}`),
      processor(`processor time of a schedule, one scheduleMany of ${TOGETHER}`),
    ],
    run: together,
  },
  { measures: [lateness("lateness p50, 500 timers a second"), lateness("lateness p99, 500 timers a second")], run: steady },
];

function single(isNamed: 0 | 1): Measurement["run"] {
  return async (object, size) => {
    const took = await object.call<number>("single", size.single, isNamed);
    return [perSecond(size.single, took)];
  };
}

async function requests(object: ObjectClient, size: Size): Promise<Figures> {
  const dueAt = Date.now() + DAY_MS;
  let next = 0;
  const begun = performance.now();
  const connection = async (): Promise<void> => {
    while (next < size.requests) {
      next += 1;
      await object.call("one", next, dueAt);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  return [perSecond(size.requests, performance.now() - begun)];
}

async function backlog(object: ObjectClient, size: Size, processorMs: () => number): Promise<Figures> {
  await object.call("hold");
  const begun = processorMs();
  const filled = await object.call<number>("many", 0, size.many, Date.now() - OVERDUE_MS);
  const full = processorMs();
  await object.call("release");
  await allFired(object, size.many);
  const empty = processorMs();
  const took = await object.call<number>("took");
  const each = (ms: number): number => (ms * 1_000) / size.many;
  return [perSecond(size.many, filled), perSecond(size.many, took), each(full - begun), each(empty - full)];
}

async function together(object: ObjectClient, size: Size, processorMs: () => number): Promise<Figures> {
  const begun = processorMs();
  const took = await object.call<number>("whole", size.together, TOGETHER, Date.now() + DAY_MS);
  return [perSecond(size.together, took), ((processorMs() - begun) * 1_000) / size.together];
}

async function steady(object: ObjectClient, size: Size): Promise<Figures> {
  await object.call("spread", size.steady, STEADY_EVERY_MS);
  await allFired(object, size.steady);
  const late = await object.call<number[]>("late");
  if (late.some((ms) => ms < 0)) {
    throw new Error("a timer fired early");
  }
  return [percentile(late, 0.5), percentile(late, 0.99)];
}

/** Waits with few questions: each takes time from what is measured. */
async function allFired(object: ObjectClient, count: number): Promise<void> {
  await until(() => object.call<number>("fired"), (fired) => fired === count, 120_000, 200);
  await until(() => object.call<number>("left"), (left) => left === 0);
}

function perSecond(count: number, ms: number): number {
  return (count * 1_000) / Math.max(ms, 1);
}

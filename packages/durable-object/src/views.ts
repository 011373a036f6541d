import type { ObjectHost } from "./host.js";
import { decodeName } from "./payload.js";
import type { DeadLetter, KindCounts, Scheduled, TimerState, TimerView } from "./types.js";

/** A timer as the core shows it. */
export interface CoreView {
  readonly kind: number;
  readonly reference: Uint8Array;
  readonly isNamed: boolean;
  readonly dueAt: number;
  readonly nextAt: number;
  readonly state: TimerState;
  readonly attempt: number;
  readonly generation: string;
  readonly payload: Uint8Array;
  readonly lastError?: string;
  readonly lastErrorAt?: number;
}

/** A dead timer as the core shows it. */
export interface CoreDead extends Omit<CoreView, "nextAt" | "state"> {
  readonly id: string;
  readonly reason: DeadLetter["reason"];
  readonly deadAt: number;
}

/** The counts of a kind as the core shows them. */
export interface CoreCounts extends Omit<KindCounts, "kind" | "isKnown"> {
  readonly kind: number;
}

export function kindCounts(host: ObjectHost, { kind, ...counts }: CoreCounts): KindCounts {
  return { ...counts, kind: host.nameOf(kind), isKnown: host.runs(kind) };
}

export function timerView<K extends string, T>(host: ObjectHost, kind: K, core: CoreView): TimerView<K, T> {
  const { reference, isNamed, payload, kind: _, ...view } = core;
  return { ...view, kind, ...(isNamed ? { name: decodeName(reference) } : {}), payload: host.shown(payload) as T };
}

export function deadLetter(host: ObjectHost, core: CoreDead): DeadLetter {
  const { reference, isNamed, payload, kind, ...view } = core;
  return {
    ...view,
    kind: host.nameOf(kind),
    ...(isNamed ? { name: decodeName(reference) } : {}),
    payload: host.shown(payload),
  };
}

/** What was scheduled. */
export function scheduledView(
  generation: bigint,
  dueAt: number,
  state: Scheduled["state"],
  outcome: Scheduled["outcome"],
): Scheduled {
  return { generation: String(generation), dueAt, state, outcome };
}

// Goal: the compiler refuses timers of `scheduleMany` that `schedule` would refuse. Method: nothing here is run; each
// use that must not compile stands behind one that must and differs from it in one thing.
import {
  TimerObject,
  Timers,
  type DuelineError,
  type Handlers,
  type RefusedTimer,
  type Scheduled,
  type ScheduleOfKind,
} from "@dueline/durable-object";
import type { Timers as TimersWithKinds } from "@dueline/durable-object/kinds";

type Kinds = { close: { reason: string }; tick: undefined; bytes: Uint8Array };

declare const timers: Timers<Kinds>;
declare const others: TimersWithKinds<Kinds>;
declare const error: DuelineError;
declare const name: string | undefined;
declare const handlers: Handlers<Kinds>;
const payload = { reason: "late" };

export async function schedule(): Promise<void> {
  const done: Scheduled[] = await timers.scheduleMany([
    { kind: "close", after: 1, payload },
    { kind: "tick", dueAt: new Date(), name: "a", policy: "ifAbsent" },
    { kind: "bytes", dueAt: 1, payload: new Uint8Array(4), name: "a", ifMatch: "1" },
  ]);
  done.map(({ generation, dueAt, state, outcome }) => [generation.length, dueAt + 1, state, outcome]);
  // @ts-expect-error What was scheduled has no name.
  done.map((one) => one.name);
  const none: Scheduled[] = await timers.scheduleMany([]);
  none.length;
  await others.scheduleMany([{ kind: "close", after: 1, payload }]);
  // @ts-expect-error It is a list.
  await timers.scheduleMany({ kind: "close", after: 1, payload });
  // @ts-expect-error It has no kind.
  await timers.scheduleMany([{ after: 1, payload }]);
  // @ts-expect-error There is no such kind.
  await timers.scheduleMany([{ kind: "closed", after: 1, payload }]);
  // @ts-expect-error The payload is of another type.
  await timers.scheduleMany([{ kind: "close", after: 1, payload: { reason: 1 } }]);
  // @ts-expect-error The payload has more than its type.
  await timers.scheduleMany([{ kind: "close", after: 1, payload: { reason: "late", seat: 4 } }]);
  // @ts-expect-error The payload is that of another kind.
  await timers.scheduleMany([{ kind: "close", after: 1, payload }, { kind: "bytes", after: 1, payload }]);
  // @ts-expect-error The payload is missing.
  await timers.scheduleMany([{ kind: "close", after: 1 }]);
  await timers.scheduleMany([{ kind: "tick", after: 1, payload: undefined }]);
  // @ts-expect-error The kind has no payload.
  await timers.scheduleMany([{ kind: "tick", after: 1, payload }]);
  // @ts-expect-error It has no due.
  await timers.scheduleMany([{ kind: "tick" }]);
  // @ts-expect-error It has two.
  await timers.scheduleMany([{ kind: "tick", after: 1, dueAt: 1 }]);
  // @ts-expect-error There is no such option.
  await timers.scheduleMany([{ kind: "tick", after: 1, nmae: "a" }]);
  // @ts-expect-error There is no such policy.
  await timers.scheduleMany([{ kind: "tick", after: 1, name: "a", policy: "keepLatest" }]);
  // @ts-expect-error A policy is for a timer with a name.
  await timers.scheduleMany([{ kind: "tick", after: 1, policy: "ifAbsent" }]);
  // @ts-expect-error This one may have none.
  await timers.scheduleMany([{ kind: "tick", after: 1, name, policy: "ifAbsent" }]);
  // @ts-expect-error A generation is that of a timer with a name.
  await timers.scheduleMany([{ kind: "tick", after: 1, ifMatch: "1" }]);
}

/** Made elsewhere, read-only, of one kind or of several. */
export async function made(seats: readonly string[]): Promise<void> {
  const all: ScheduleOfKind<Kinds>[] = seats.map((seat) => ({ kind: "close", name: seat, after: 1, payload }));
  all.push({ kind: "tick", after: 1 });
  await timers.scheduleMany(all);
  await timers.scheduleMany(seats.map((seat) => ({ kind: "close", name: seat, after: 1, payload })));
  // @ts-expect-error The payload is of another type.
  await timers.scheduleMany(seats.map((seat) => ({ kind: "close", after: 1, payload: seat })));
  const frozen: readonly ScheduleOfKind<Kinds>[] = all;
  await timers.scheduleMany(frozen);
  // @ts-expect-error There is no such kind.
  all.push({ kind: "tock", after: 1 });
}

export function told(): string | undefined {
  const refused: RefusedTimer | undefined = error.refused;
  refused?.index.toFixed();
  // @ts-expect-error It may be missing.
  error.refused.index;
  return refused?.name ?? refused?.kind;
}

export class Room extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return handlers;
  }

  async fill(): Promise<void> {
    await this.scheduleMany([{ kind: "tick", after: 1 }]);
    await this.timers.scheduleMany([{ kind: "tick", after: 1 }]);
    // @ts-expect-error There is no such kind.
    await this.scheduleMany([{ kind: "tock", after: 1 }]);
  }
}

/** As another object or a worker sees it. */
export async function overRpc(room: DurableObjectStub<Room>): Promise<number> {
  // @ts-expect-error There is no such kind.
  await room.scheduleMany([{ kind: "tock", after: 1 }]);
  return (await room.scheduleMany([{ kind: "close", after: 1, payload }])).length;
}

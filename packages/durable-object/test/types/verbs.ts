// Goal: the compiler refuses verbs that are used wrongly. Method: nothing here is run; each use that must not compile
// stands behind one that must and differs from it in one thing. An error that is expected and missing fails the build.
import { TimerObject, Timers, type Handlers, type TimerView } from "@dueline/durable-object";

type Kinds = { close: { reason: string }; tick: undefined; maybe: { n: number } | undefined; bytes: Uint8Array };

declare const timers: Timers<Kinds>;
declare const ctx: DurableObjectState;
declare const handlers: Handlers<Kinds>;
declare const name: string | undefined;
const payload = { reason: "late" };

export async function schedule(): Promise<void> {
  await timers.schedule("close", { after: 1, payload });
  // @ts-expect-error There is no such kind.
  await timers.schedule("closed", { after: 1, payload });
  // @ts-expect-error The payload is of another type.
  await timers.schedule("close", { after: 1, payload: { reason: 1 } });
  // @ts-expect-error The payload has more than its type.
  await timers.schedule("close", { after: 1, payload: { reason: "late", seat: 4 } });
  // @ts-expect-error The payload is missing.
  await timers.schedule("close", { after: 1 });

  await timers.schedule("tick", { after: 1 });
  await timers.schedule("tick", { after: 1, payload: undefined });
  // @ts-expect-error The kind has no payload.
  await timers.schedule("tick", { after: 1, payload });
  await timers.schedule("maybe", { after: 1 });
  await timers.schedule("maybe", { after: 1, payload: { n: 1 } });
  // @ts-expect-error A payload that may be left out has a type all the same.
  await timers.schedule("maybe", { after: 1, payload: { n: "1" } });
  await timers.schedule("bytes", { after: 1, payload: new Uint8Array(4) });
  // @ts-expect-error A text is not bytes.
  await timers.schedule("bytes", { after: 1, payload: "four" });

  await timers.schedule("close", { dueAt: new Date(), payload });
  await timers.schedule("close", { dueAt: Date.now(), payload });
  // @ts-expect-error A due is a number or a Date.
  await timers.schedule("close", { dueAt: "2030-01-01", payload });
  // @ts-expect-error A span is a number.
  await timers.schedule("close", { after: new Date(), payload });
  // @ts-expect-error It has no due.
  await timers.schedule("close", { payload });
  // @ts-expect-error It has two.
  await timers.schedule("close", { after: 1, dueAt: 1, payload });

  await timers.schedule("close", { after: 1, payload, name: "a" });
  if (name !== undefined) {
    await timers.schedule("close", { after: 1, payload, name });
  }
  // @ts-expect-error There is no such option.
  await timers.schedule("close", { after: 1, payload, nmae: "a" });
  await timers.schedule("close", { after: 1, payload, name: "a", policy: "keepEarliest", ifMatch: "1" });
  // @ts-expect-error There is no such policy.
  await timers.schedule("close", { after: 1, payload, name: "a", policy: "keepLatest" });
  // @ts-expect-error A policy is for a timer with a name.
  await timers.schedule("close", { after: 1, payload, policy: "keepEarliest" });
  // @ts-expect-error This one may have none.
  await timers.schedule("close", { after: 1, payload, name, policy: "keepEarliest" });
  // @ts-expect-error A generation is that of a timer with a name.
  await timers.schedule("close", { after: 1, payload, ifMatch: "1" });
  // @ts-expect-error A generation is a text.
  await timers.schedule("close", { after: 1, payload, name: "a", ifMatch: 1 });
}

export async function others(): Promise<void> {
  await timers.cancel("close", "a", { ifMatch: "1" });
  // @ts-expect-error There is no such kind.
  await timers.cancel("closed", "a");
  // @ts-expect-error Without a name nothing is found.
  await timers.cancel("close");
  // @ts-expect-error There is no such option.
  await timers.cancel("close", "a", { ifmatch: "1" });

  const view: TimerView<"close", { reason: string }> | undefined = await timers.get("close", "a");
  view?.payload.reason.length;
  // @ts-expect-error It may not be there.
  view.payload.reason;
  // @ts-expect-error The payload has no such part.
  view?.payload.seat;
  // @ts-expect-error There is no such kind.
  await timers.get("closed", "a");

  await timers.list("close", { states: ["dead", "retrying"], prefix: "a", dueBefore: new Date(), limit: 5 });
  // @ts-expect-error There is no such state.
  await timers.list("close", { states: ["done"] });

  await timers.reschedule("close", "a", { after: 1, ifMatch: "1" });
  // @ts-expect-error It has no due.
  await timers.reschedule("close", "a", { ifMatch: "1" });
  // @ts-expect-error The payload stays as it is.
  await timers.reschedule("close", "a", { after: 1, payload });

  await timers.pause("close", { wait: true });
  // @ts-expect-error There is no such kind.
  await timers.pause("closed");
  // @ts-expect-error There is no such kind.
  await timers.resume("closed");
  await timers.deadLetters.list({ kind: "close", limit: 5 });
  // @ts-expect-error There is no such kind.
  await timers.deadLetters.list({ kind: "closed" });
  await timers.deadLetters.requeueAll("close");
  // @ts-expect-error There is no such kind.
  await timers.deadLetters.requeueAll("closed");
  await timers.setAlarm(new Date());
  // @ts-expect-error An alarm is a number or a Date.
  await timers.setAlarm("2030-01-01");
}

export const made: readonly Timers<Kinds>[] = [
  new Timers<Kinds>(ctx, { handlers, fired: 64 }),
  new Timers<Kinds>(ctx, { handlers: () => handlers }),
  // @ts-expect-error Most kinds have no handler.
  new Timers<Kinds>(ctx, { handlers: { close: () => undefined } }),
  // @ts-expect-error There are no handlers.
  new Timers<Kinds>(ctx, {}),
  // @ts-expect-error The setting is a number.
  new Timers<Kinds>(ctx, { handlers, fired: "64" }),
  new Timers<Kinds>(ctx, { handlers, log: false }),
  new Timers<Kinds>(ctx, { handlers, log: (event) => (event.type === "failed" ? console.log(event.attempt) : undefined) }),
  new Timers<Kinds>(ctx, { handlers, log: async (event) => void (event.type === "alarm" && event.report.fired) }),
  // @ts-expect-error An alarm has no attempts.
  new Timers<Kinds>(ctx, { handlers, log: (event) => void (event.type === "alarm" && event.attempt) }),
  // @ts-expect-error There is no such event.
  new Timers<Kinds>(ctx, { handlers, log: (event) => void (event.type === "fired") }),
  // @ts-expect-error It is a function.
  new Timers<Kinds>(ctx, { handlers, log: "console" }),
  // @ts-expect-error There is no such setting.
  new Timers<Kinds>(ctx, { handlers, fires: 64 }),
];

export class Right extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return handlers;
  }
  protected override settings() {
    return { calls: 4 };
  }
}

// @ts-expect-error It has no handlers.
export class WithoutHandlers extends TimerObject<Kinds> {}

export class WithoutMost extends TimerObject<Kinds> {
  // @ts-expect-error Most kinds have no handler.
  protected override handlers() {
    return { close: () => undefined };
  }
}

export class WithWrongSettings extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return handlers;
  }
  // @ts-expect-error The setting is a number.
  protected override settings() {
    return { calls: "4" };
  }
}

/** As another object or a worker sees it. */
export async function overRpc(room: DurableObjectStub<Right>): Promise<void> {
  await room.schedule("close", { after: 1, payload });
  // @ts-expect-error There is no such kind.
  await room.schedule("closed", { after: 1, payload });
  // @ts-expect-error Dead letters are the object's own.
  await room.deadLetters;
}

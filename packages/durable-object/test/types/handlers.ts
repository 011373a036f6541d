// Goal: the compiler refuses handlers that the engine would refuse. Method: that of `verbs.ts`.
import { dead, detached, done, reschedule, retry, type FollowUp, type Handlers, type Outcome } from "@dueline/durable-object";

type Kinds = { close: { reason: string }; tick: undefined };

declare function kinds(handlers: Handlers<Kinds>): void;
declare function close(kind: Handlers<Kinds>["close"]): void;
declare function tick(kind: Handlers<Kinds>["tick"]): void;
declare const sql: SqlStorage;
const payload = { reason: "late" };

export function whole(): void {
  kinds({ close: () => undefined, tick: () => undefined });
  // @ts-expect-error A kind has no handler.
  kinds({ close: () => undefined });
  // @ts-expect-error There is no such kind.
  kinds({ close: () => undefined, tick: () => undefined, tock: () => undefined });
}

export function copied(): void {
  close((timer) => void timer.signal.aborted);
  close((timer) => void { ...timer }.occurrenceId.length);
  // @ts-expect-error A copy has no signal.
  close((timer) => void { ...timer }.signal.aborted);
  // @ts-expect-error Nor has one of the rest.
  close(({ payload: _, ...rest }) => void rest.signal.aborted);
}

export function returned(): void {
  close(() => {});
  close(async () => {});
  // @ts-expect-error That is no outcome.
  close(() => 5);
  // @ts-expect-error Nor is what it promises.
  close(async () => 5);
  // @ts-expect-error Effects alone are a function.
  close(() => ({ effects: () => {} }));
  // @ts-expect-error The payload has no such part.
  close((timer) => void timer.payload.seat);
  close((timer) => void timer.payload.reason.length);
}

export function effects(): void {
  close(() => () => {});
  close(() => () => sql.exec("DELETE FROM seats"));
  close(() => () => sql.exec("DELETE FROM seats").rowsWritten);
  close(async () => () => void sql.exec("DELETE FROM seats"));
  close(() => done(() => sql.exec("DELETE FROM seats")));
  close(() => done({ effects: () => sql.exec("DELETE FROM seats") }));
  close(() => () => sql.exec<{ seat: string }>("DELETE FROM seats RETURNING seat").toArray());
  close(() => () => new Map().set("a", 1));
  // @ts-expect-error An outcome is returned beside effects.
  close(() => () => done());
  // @ts-expect-error An outcome is returned beside effects.
  close(() => () => reschedule({ after: 1 }));
  // @ts-expect-error So is what goes with one.
  close(() => () => ({ schedule: [{ kind: "tick", after: 1 }] }));
  // @ts-expect-error Effects do what they do themselves.
  close(() => () => () => sql.exec("DELETE FROM seats"));
  // @ts-expect-error An outcome is made by calling this.
  close(() => done);
  // @ts-expect-error An outcome is made by calling this.
  close(() => retry);
  // @ts-expect-error An outcome is returned beside effects.
  close(() => done({ effects: () => dead("late") }));
  // @ts-expect-error Effects are over when they return.
  close(() => async () => {});
  // @ts-expect-error Effects are over when they return.
  close(async () => async () => {});
  // @ts-expect-error Effects are over when they return.
  close(() => () => Promise.resolve(5));
  // @ts-expect-error Effects are over when they return.
  close(() => done(async () => {}));
  // @ts-expect-error Effects are over when they return.
  close(() => dead("late", async () => {}));
  // @ts-expect-error Effects are over when they return.
  close(() => reschedule({ after: 1 }, { effects: async () => {} }));
}

export function outcomes(): void {
  close(() => dead("late"));
  // @ts-expect-error A reason is missing.
  close(() => dead());
  close(() => retry("late", 5_000));
  // @ts-expect-error A reason is missing.
  close(() => retry());
  // @ts-expect-error A span is a number.
  close(() => retry("late", { after: 5_000 }));
  close(() => reschedule({ after: 1 }));
  // @ts-expect-error It has no due.
  close(() => reschedule({}));
  close(() => reschedule({ after: 1, payload }));
  // @ts-expect-error The payload is of another type.
  close(() => reschedule({ after: 1, payload: 5 }));
}

export function followUps(): void {
  close(() => done({ schedule: [{ kind: "tick", after: 1 }, { kind: "close", dueAt: new Date(), payload }] }));
  close(() => dead("late", { schedule: [{ kind: "tick", name: "a", policy: "ifAbsent", after: 1 }] }));
  close((timer) => (timer.attempt > 1 ? done({ schedule: [{ kind: "tick", after: 1 }] }) : reschedule({ after: 1, payload })));
  // @ts-expect-error There is no such kind.
  close(() => done({ schedule: [{ kind: "tock", after: 1 }] }));
  // @ts-expect-error There is no such kind.
  close(() => reschedule({ after: 1 }, { schedule: [{ kind: "tock", after: 1 }] }));
  // @ts-expect-error There is no such kind.
  close(async () => dead("late", { schedule: [{ kind: "tock", after: 1 }] }));
  // @ts-expect-error The payload is missing.
  close(() => done({ schedule: [{ kind: "close", after: 1 }] }));
  // @ts-expect-error The payload is of another type.
  close(() => done({ schedule: [{ kind: "close", after: 1, payload: { reason: 1 } }] }));
  // @ts-expect-error It has no due.
  close(() => done({ schedule: [{ kind: "tick" }] }));
  // @ts-expect-error A policy is for a timer with a name.
  close(() => done({ schedule: [{ kind: "tick", after: 1, policy: "ifAbsent" }] }));
  // @ts-expect-error What is scheduled beside a fire is written whatever its generation is.
  close(() => done({ schedule: [{ kind: "tick", after: 1, name: "a", ifMatch: "1" }] }));
  // @ts-expect-error The kind is that of this object, whatever another has.
  close(() => done<{ tock: undefined }>({ schedule: [{ kind: "tock", after: 1 }] }));
}

export function cancelled(): void {
  close(() => done({ cancel: [{ kind: "tick", name: "a" }] }));
  close(() => dead("late", { cancel: [{ kind: "close", name: "a" }], schedule: [{ kind: "tick", after: 1 }] }));
  // @ts-expect-error There is no such kind.
  close(() => done({ cancel: [{ kind: "tock", name: "a" }] }));
  // @ts-expect-error Without a name nothing is found.
  close(() => done({ cancel: [{ kind: "tick" }] }));
}

export const followUp: FollowUp<Kinds> = { kind: "tick", after: 1, name: "a", policy: "replace" };

export function inline(): void {
  close({ run: () => {}, group: 64, retry: { attempts: Infinity } });
  // @ts-expect-error There is nothing to run.
  close({ group: 64 });
  // @ts-expect-error Only calls have slots.
  close({ run: () => {}, concurrency: 4 });
  // @ts-expect-error There is no such option.
  close({ run: () => {}, retry: { attemps: 4 } });
  close({ run: () => {}, parse: () => payload });
  // @ts-expect-error It reads another payload.
  close({ run: () => {}, parse: () => ({ reason: 5 }) });
}

export function calls(): void {
  tick(detached({ call: () => 5 }));
  tick(detached({ call: () => 5, settle: (_, output: number) => (output > 4 ? retry("late") : () => {}) }));
  tick(detached({ call: async () => 5, settle: (_, output) => done({ effects: () => void output.toFixed() }) }));
  tick(detached({ call: async () => 5, settle: () => done({ schedule: [{ kind: "tick", after: 1 }] }), concurrency: 4 }));
  // @ts-expect-error The call brings back a number.
  tick(detached({ call: () => 5, settle: (_, output: string) => void output }));
  // @ts-expect-error The call brings back a number.
  tick(detached({ call: async () => 5, settle: (_, output) => void output.length }));
  // @ts-expect-error That is no outcome.
  tick(detached({ call: () => 5, settle: () => 5 }));
  // @ts-expect-error Effects are over when they return.
  tick(detached({ call: () => 5, settle: () => async () => {} }));
  // @ts-expect-error There is no such kind.
  tick(detached({ call: () => 5, settle: () => done({ schedule: [{ kind: "tock", after: 1 }] }) }));
  // @ts-expect-error There is nothing to call.
  tick(detached({ settle: () => {} }));
  // @ts-expect-error Calls are settled one by one.
  tick(detached({ call: () => 5, group: 64 }));
  // @ts-expect-error Whether a settle fits its call is seen by `detached`.
  tick({ call: () => 5, settle: (_: unknown, output: string) => void output });
}

export function ofPayload(): void {
  close(detached({ call: (timer) => timer.payload.reason, settle: (_, reason) => void reason.length }));
  // @ts-expect-error The payload has no such part.
  close(detached({ call: (timer) => timer.payload.seat }));
}

/** Outcomes that are made apart from their handlers. */
const given = dead("late");
const any = (isLate: boolean): Outcome => (isLate ? given : done());
const ofKinds = (): Outcome<Kinds> => done({ schedule: [{ kind: "tick", after: 1 }] });
// @ts-expect-error There is no such kind.
const ofWrongKinds = (): Outcome<Kinds> => done({ schedule: [{ kind: "tock", after: 1 }] });

export function apart(): void {
  close(() => given);
  close(() => any(true));
  close((timer) => (timer.attempt > 1 ? ofKinds() : given));
  close(ofWrongKinds);
  tick(detached({ call: () => 5, settle: () => given }));
  tick(detached({ call: () => 5, settle: (timer) => (timer.attempt > 1 ? ofKinds() : () => {}) }));
}

// Goal: whatever a caller hands over, over RPC too, is an error of that call and never breaks the engine, which
// other objects share. Method: each verb with arguments of the wrong form, and a sound call behind each.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { Timers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";
import { ErrorsTold } from "./errors-told.js";

class Room extends DurableObject {
  readonly timers = new Timers<{ close: undefined }>(this.ctx, { handlers: { close: () => undefined } });
  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    await this.timers.alarm(info);
  }
}

type Verbs = Timers<{ close: undefined }>;

const WRONG: Record<string, (timers: Verbs, wrong: never) => Promise<unknown>> = {
  "the name of a schedule": (timers, name) => timers.schedule("close", { name, after: 1 }),
  "the generation of a schedule": (timers, ifMatch) => timers.schedule("close", { name: "a", after: 1, ifMatch }),
  "the name of a cancel": (timers, name) => timers.cancel("close", name),
  "the generation of a cancel": (timers, ifMatch) => timers.cancel("close", "a", { ifMatch }),
  "the name of a get": (timers, name) => timers.get("close", name),
  "the name of a reschedule": (timers, name) => timers.reschedule("close", name, { after: 1 }),
  "the generation of a reschedule": (timers, ifMatch) => timers.reschedule("close", "a", { after: 1, ifMatch }),
  "the states of a list": (timers, states) => timers.list("close", { states }),
  "a state of a list": (timers, state) => timers.list("close", { states: [state] }),
  "the prefix of a list": (timers, prefix) => timers.list("close", { prefix }),
  "where a list goes on": (timers, after) => timers.list("close", { after }),
  "where a list of dead letters goes on": (timers, after) => timers.deadLetters.list({ after }),
  "the options of a cancel": (timers, options) => timers.cancel("close", "a", options),
  "the options of a list": (timers, options) => timers.list("close", options),
  "the options of a pause": (timers, options) => timers.pause("close", options),
  "the options of a list of dead letters": (timers, options) => timers.deadLetters.list(options),
  "the timer of a schedule": (timers, timer) => timers.schedule("close", timer),
  "when a reschedule is": (timers, when) => timers.reschedule("close", "a", when),
  "the limit of a list": (timers, limit) => timers.list("close", { limit }),
  "the dead letter to requeue": (timers, id) => timers.deadLetters.requeue(id),
  "the dead letter to purge": (timers, id) => timers.deadLetters.purge(id),
};

let errors: ErrorsTold;
let clock: TestClock;
let room: TestObject<Room>;

beforeEach(async () => {
  errors = new ErrorsTold();
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => {
  clock.uninstall();
  errors.end();
});

for (const [what, call] of Object.entries(WRONG)) {
  it(`${what} may be wrong`, async () => {
    const { timers } = room.instance;
    const invalid = (error: unknown): boolean => (error as { code?: string }).code === "invalid";
    for (const wrong of [5, {}, null, Symbol.iterator, 1n, Object.create(null) as object, "\ud800"]) {
      // A text that is none of the engine's is the engine's to refuse, or an ordinary prefix; options may be empty,
      // and a limit of 5 is one.
      const isText = typeof wrong === "string" && !what.includes("name");
      const isRight = typeof wrong === "object" && wrong !== null && what.includes("options of");
      if (!isText && !isRight && !(wrong === 5 && what.includes("limit"))) {
        await assert.rejects(call(timers, wrong as never), invalid, `${what}: ${typeof wrong}`);
      }
    }
    await timers.schedule("close", { name: "a", after: 1 });
    assert.deepEqual(errors.told, []);
    assert.notEqual(await timers.get("close", "a"), undefined);
  });
}

for (const dueAt of [null, "12", [5], true, new Date(Number.NaN), 1n, Symbol.iterator, Object.create(null), Number.NaN, -1, 1e300]) {
  it(`no time of a ${typeof dueAt} is taken for one`, async () => {
    const { timers } = room.instance;
    const asked = [
      timers.schedule("close", { dueAt } as never),
      timers.reschedule("close", "a", { dueAt } as never),
      timers.list("close", { dueBefore: dueAt as never }),
    ];
    for (const call of asked) {
      await assert.rejects(call, (error) => (error as { code?: string }).code === "due_out_of_range");
    }
    assert.deepEqual(await timers.counts(), []);
  });
}

it("a verb that is called in a transaction of the object's own runs behind it", async () => {
  const { timers } = room.instance;
  const { storage } = (room.instance as unknown as { ctx: DurableObjectState }).ctx;
  const called: Promise<unknown>[] = [];
  const rolledBack = (): void => {
    called.push(timers.schedule("close", { name: "a", after: 1 }));
    called.push(timers.scheduleMany([{ kind: "close", name: "b", after: 1 }]));
    throw new Error("rolled back");
  };
  assert.throws(() => storage.transactionSync(rolledBack), /rolled back/);
  await Promise.all(called);
  assert.equal((await timers.list("close")).items.length, 2);
});

for (const wait of [1, "yes", null, 1n, Symbol.iterator, Object.create(null)]) {
  it(`a pause waits for no ${typeof wait}`, async () => {
    const { timers } = room.instance;
    assert.equal(await timers.pause("close", { wait: wait as never }), true);
    assert.deepEqual(await timers.paused(), ["close"]);
    assert.deepEqual(errors.told, []);
  });
}

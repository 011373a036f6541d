// Goal: whatever a caller hands over, over RPC too, is an error of that call and never breaks the engine, which
// other objects share. Method: each verb with arguments of the wrong form, and a sound call behind each.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { Timers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { DurableObject } from "cloudflare:workers";

class Room extends DurableObject {
  readonly timers = new Timers<{ close: undefined }>(this.ctx, { handlers: { close: () => undefined } });
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
  "the dead letter to requeue": (timers, id) => timers.deadLetters.requeue(id),
  "the dead letter to purge": (timers, id) => timers.deadLetters.purge(id),
};

let clock: TestClock;
let room: TestObject<Room>;

beforeEach(async () => {
  clock = TestClock.install();
  room = await TestObject.open(clock, Room);
});
afterEach(() => clock.uninstall());

for (const [what, call] of Object.entries(WRONG)) {
  it(`${what} may be wrong`, async () => {
    const { timers } = room.instance;
    const invalid = (error: unknown): boolean => (error as { code?: string }).code === "invalid";
    for (const wrong of [5, {}, null, Symbol.iterator, "\ud800"]) {
      // A text that is none of the engine's is the engine's to refuse, or an ordinary prefix.
      const isText = typeof wrong === "string" && !what.includes("name");
      if (!isText) {
        await assert.rejects(call(timers, wrong as never), invalid, String(wrong));
      }
    }
    await timers.schedule("close", { name: "a", after: 1 });
    assert.notEqual(await timers.get("close", "a"), undefined);
  });
}

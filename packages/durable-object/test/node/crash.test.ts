// What a trap of the engine and a kill of the process leave.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Answered, Workerd, until, type ObjectClient } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "worker.js", classes: ["Everything"] });
});
after(() => workerd.stop());

interface Effect {
  readonly text: string;
  readonly at: number;
  readonly due: number;
  readonly attempt: number;
}

const effects = (object: ObjectClient, count: number): Promise<Effect[]> =>
  until(() => object.call<Effect[]>("effects"), (found) => found.length >= count);

it("goes on after a trap, in every object of the isolate", async () => {
  const broken = workerd.object("Everything", "broken");
  const bystander = workerd.object("Everything", "bystander");
  const busy = workerd.object("Everything", "busy");
  const due = Date.now() + 1_500;
  await broken.call("schedule", "write", { name: "kept", dueAt: due, payload: { text: "kept" } });
  await bystander.call("schedule", "write", { name: "kept", dueAt: due, payload: { text: "kept too" } });
  await busy.call("schedule", "slow", { after: 0, payload: { ms: 500 } });
  // Its handler waits when the engine goes.
  await until(() => busy.call("alarm"), (alarm) => alarm === null);
  const error = await broken.call("trap").catch((thrown: unknown) => thrown);
  assert.ok(error instanceof Answered && error.code === "crashed", String(error));
  await broken.call("schedule", "write", { dueAt: due, payload: { text: "after" } });
  assert.deepEqual((await effects(broken, 2)).map(({ text }) => text), ["kept", "after"]);
  assert.deepEqual((await effects(bystander, 1)).map(({ text }) => text), ["kept too"]);
  // The alarm that was lost with the engine is tried again by the platform, and counted as an attempt.
  const again = await effects(busy, 1);
  assert.deepEqual(again.map(({ text }) => text), ["slow"]);
});

it("fires every acknowledged timer once across kills of the process", async () => {
  const object = workerd.object("Everything", "killed");
  const first = Date.now() + 300;
  const wanted: string[] = [];
  for (let index = 0; index < 60; index += 1) {
    const text = `timer ${index}`;
    const timer = { dueAt: first + index * 40, payload: { text }, ...(index % 2 === 0 ? { name: text } : {}) };
    await object.call("schedule", "write", timer);
    wanted.push(text);
  }
  for (let kill = 0; kill < 3; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    await workerd.kill();
    await workerd.start();
  }
  const found = await effects(object, wanted.length);
  assert.deepEqual(found.map(({ text }) => text).sort(), [...wanted].sort());
  for (const effect of found) {
    assert.ok(effect.at >= effect.due, `${effect.text} was early`);
  }
});

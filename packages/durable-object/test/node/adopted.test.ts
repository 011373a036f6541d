// An object that has an alarm of its own keeps it when it adopts the timers.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Workerd, until, type ObjectClient } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "worker.js", classes: ["Adopted"] });
});
after(() => workerd.stop());

const log = (object: ObjectClient, count: number): Promise<string[]> =>
  until(() => object.call<string[]>("log"), (found) => found.length >= count);

it("fires the alarm that was pending at the adoption, beside timers", async () => {
  const object = workerd.object("Adopted", "pending");
  await object.call("setOldAlarm", 2_000);
  await object.call("upgrade");
  await object.call("tick", 50);
  // A slow machine may come to the tick behind the alarm.
  assert.deepEqual((await log(object, 2)).sort(), ["own alarm", "tick"]);
});

it("fires an alarm that woke the object into its new version", async () => {
  const object = workerd.object("Adopted", "woken");
  await object.call("setOldAlarm", 60_000);
  await object.call("upgrade");
  assert.ok((await object.call<number>("getAlarm")) > Date.now());
  await object.call("deleteAlarm");
  assert.equal(await object.call("getAlarm"), null);
});

it("sets, moves and deletes its own alarm as the storage does", async () => {
  const object = workerd.object("Adopted", "own");
  await object.call("upgrade");
  await object.call("setAlarm", 60_000);
  const first = await object.call<number>("getAlarm");
  await object.call("setAlarm", 100);
  assert.ok((await object.call<number>("getAlarm")) < first);
  assert.deepEqual(await log(object, 1), ["own alarm"]);
  assert.equal(await object.call("getAlarm"), null);
  await object.call("setAlarm", 3_000);
  await object.call("deleteAlarm");
  await object.call("tick", 3_500);
  assert.deepEqual(await log(object, 2), ["own alarm", "tick"]);
});

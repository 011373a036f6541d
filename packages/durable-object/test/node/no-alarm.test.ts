// Goal: in a real workerd, a class that its alarm cannot wake is refused before a timer is stored, and one whose
// `alarm()` forgets the timers is told of. Method: such classes, their tables, the console.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { until, Workerd } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "no-alarm.js", classes: ["WithoutAlarm", "Composed", "Forgets"] });
});
after(() => workerd.stop());

const NO_ALARM = /no `alarm\(\)`.* Add: async alarm\(info\)/;

it("refuses a class without `alarm()`, whenever its timers are made, and writes nothing", async () => {
  const object = workerd.object("WithoutAlarm", "a");
  for (let round = 0; round < 2; round += 1) {
    await assert.rejects(object.call("schedule"), NO_ALARM);
    assert.deepEqual(await object.call("tables"), []);
  }
  await assert.rejects(workerd.object("Composed", "b").call("schedule"), NO_ALARM);
});

it("tells of an `alarm()` that does not serve the timers", async () => {
  await workerd.object("Forgets", "c").call("schedule");
  await until(async () => workerd.log, (log) => log.includes("`super.alarm(info)`"));
  assert.match(workerd.log, /the class has its alarm/);
  assert.doesNotMatch(workerd.log, /engine trapped/);
});

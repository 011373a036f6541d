// What a schedule and a fire write, counted by the platform.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Workerd, until } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "worker.js", classes: ["Counted"] });
});
after(() => workerd.stop());

interface Counts {
  /** Due before everything that is pending: its wake is moved. */
  readonly anonymous: number;
  readonly named: number;
  /** Due behind what is pending. */
  readonly later: number;
  readonly laterNamed: number;
}

it("writes at most 2 rows for an anonymous timer and 3 for a named one", async () => {
  const object = workerd.object("Counted", "one");
  await object.call("warm");
  const counts = await object.call<Counts>("count");
  console.log(`rows written: ${JSON.stringify(counts)}`);
  assert.deepEqual(counts, { anonymous: 2, named: 3, later: 1, laterNamed: 2 });
});

it("has few statements for a schedule and for an alarm, and one for each further timer", async () => {
  const object = workerd.object("Counted", "statements");
  await object.call("warm");
  assert.deepEqual(await object.call("statements"), { later: 1, named: 2, replaced: 8, sooner: 4 });
  const alarm = async (timers: number): Promise<number | null> => {
    await object.call("soon", timers);
    return until(() => object.call<number | null>("alarm"), (found) => found !== null);
  };
  assert.equal(await alarm(1), 9);
  assert.equal(await alarm(10), 9 + 9);
});

/** Timers of one call of `scheduleMany`. */
const COUNT = 100;

it("writes for each of many timers what it writes for one, and the alarm and the wake once", async () => {
  const object = workerd.object("Counted", "many");
  await object.call("warm");
  const counts = await object.call<Record<string, unknown>>("many");
  console.log(`${COUNT} in one call: ${JSON.stringify(counts)}`);
  const cost = (read: number, written: number, alarms: number) => ({ read, written, alarms });
  assert.deepEqual(counts, {
    one: cost(5, 2, 1),
    oneNamed: cost(5, 3, 1),
    oneReplaced: cost(6, 3, 0),
    anonymous: cost(5, COUNT + 1, 1),
    named: cost(6, 2 * COUNT + 1, 1),
    later: cost(1, COUNT, 0),
    laterNamed: cost(2, 2 * COUNT, 0),
    replaced: cost(3 * COUNT + 2, 3 * COUNT, 0),
    none: cost(0, 0, 0),
  });
});

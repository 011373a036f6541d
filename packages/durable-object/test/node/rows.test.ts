// What a schedule and a fire write, counted by the platform.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Workerd } from "./workerd.js";

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

it("writes at most 3 rows for an anonymous timer and 4 for a named one", async () => {
  const object = workerd.object("Counted", "one");
  await object.call("warm");
  const counts = await object.call<Counts>("count");
  console.log(`rows written: ${JSON.stringify(counts)}`);
  assert.deepEqual(counts, { anonymous: 3, named: 4, later: 1, laterNamed: 2 });
});

// Goal: in a real workerd, what an application takes back with a transaction of its own takes nothing else with it.
// Method: verbs within `ctx.storage.transaction`, some given up, then verbs that stand, and what fires.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until, Workerd } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "taking-back.js", classes: ["Orders"] });
});
after(() => workerd.stop());

const VERBS = ["schedule", "anonymous", "scheduleMany"];

for (const how of ["throw", "rollback"]) {
  describe(`behind a transaction that ends by a ${how}`, () => {
    for (const verb of VERBS) {
      it(`a timer fires, in one and outside of one (${verb})`, async () => {
        const object = workerd.object("Orders", `${how}-${verb}`);
        await object.call("within", verb, "declined", true, how);
        await object.call("within", verb, "ordered", false);
        await object.call("within", verb, "declined too", true, how);
        await object.call("call", "schedule", "behind");
        const fired = await until(
          () => object.call<string[]>("fired"),
          (names) => names.length >= 2,
        );
        assert.deepEqual([...fired].sort(), [verb === "anonymous" ? "anonymous" : "ordered", "behind"].sort());
      });
    }

    it("a timer whose cancel was taken back fires", async () => {
      const object = workerd.object("Orders", `${how}-cancel`);
      await object.call("call", "schedule", "kept");
      await object.call("within", "cancel", "kept", true, how);
      const fired = await until(
        () => object.call<string[]>("fired"),
        (names) => names.length > 0,
      );
      assert.deepEqual(fired, ["kept"]);
    });

    it("an outbox delivers", async () => {
      const object = workerd.object("Orders", `${how}-append`);
      await object.call("within", "append", "declined", true, how);
      await object.call("within", "append", "ordered", false);
      const fired = await until(
        () => object.call<string[]>("fired"),
        (names) => names.length > 0,
      );
      assert.deepEqual(fired, ["mail ordered"]);
    });
  });
}

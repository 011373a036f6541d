// The conformance suite of the store contract, over the platform's own database.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Workerd } from "./workerd.js";

/** Fewer cases than the suite had when this was written would be a suite that has been cut. */
const CASES_MIN = 90;

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "conformance.js", classes: ["Conformance"] });
});
after(() => workerd.stop());

it("keeps the contract of stores", async (t) => {
  const cases = await workerd.object("Conformance", "list").call<string[]>("cases");
  assert.ok(cases.length >= CASES_MIN, `${cases.length} cases`);
  for (const name of cases) {
    await t.test(name, async () => {
      assert.equal(await workerd.object("Conformance", name).call("run", name), null);
    });
  }
});

it("tells of a case that fails", async () => {
  const object = workerd.object("Conformance", "none");
  assert.match(await object.call<string>("run", "fails"), /as asked/);
  assert.equal(await object.call("run", "no such case"), "there is no such case");
});

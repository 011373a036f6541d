// Goal: the store of an object keeps the store contract, and the built-in kinds do over it what they do over
// every other. Method: the suites of the engine as a WebAssembly module in a real workerd, each case in an
// object of its own over `ctx.storage.sql` and `transactionSync`, by a clock that the case moves.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Workerd } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "suite.js", classes: ["Suite"], suite: true });
});
after(() => workerd.stop());

/** Runs all cases of a list, one after another, each as a test of its own. */
function runAll(what: string, list: "contract" | "kinds", least: number): void {
  it(what, async (t) => {
    const names = await workerd.object("Suite", "lists").call<string[]>(list);
    assert.ok(names.length >= least, `${names.length} cases`);
    for (const name of names) {
      await t.test(name.replace("::", ": ").replaceAll("_", " "), async () => {
        await workerd.object("Suite", name).call("run", name);
      });
    }
  });
}

describe("in an object", () => {
  runAll("the store contract holds", "contract", 100);
  runAll("the built-in kinds behave", "kinds", 200);
});

// Goal: in a real workerd, an object whose storage was emptied under its timers goes on as a new one does, and what a
// transaction took back takes neither timers nor alarms of others with it. Method: `deleteAll()` in a request, in a handler
// and in effects, then verbs of the same instance; verbs beside a transaction that is given up.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until, Workerd, type ObjectClient } from "./workerd.js";

let workerd: Workerd;
before(async () => {
  workerd = await Workerd.start({ entry: "taken-away.js", classes: ["Wiped", "Grown"], preventEviction: true });
});
after(() => workerd.stop());

const fired = (object: ObjectClient, count: number): Promise<string[]> =>
  until(() => object.call<string[]>("fired"), (names) => names.length >= count);

describe("behind a `deleteAll()`", () => {
  it("of a request what was there is gone, and timers are scheduled and fire", async () => {
    const object = workerd.object("Wiped", "request");
    for (const round of [1, 2]) {
      await object.call("schedule", "note", `gone ${round}`, 3_600_000);
      await object.call("wipe");
      assert.equal(await object.call("tables"), 0);
      const names = Array.from({ length: 8 }, (_, index) => `kept ${round} ${index}`);
      await Promise.all(names.map((name) => object.call("schedule", "note", name, 0)));
    }
    assert.equal((await fired(object, 16)).length, 16);
    assert.deepEqual(await object.call("names"), []);
  });

  for (const kind of ["wipe", "wipeInEffects"]) {
    it(`of a handler (${kind}) nothing is left, and no alarm is tried again`, async () => {
      const object = workerd.object("Wiped", kind);
      await object.call("schedule", "note", "gone", 3_600_000);
      await object.call("schedule", kind, "now", 0);
      await fired(object, 1);
      await until(() => object.call<number>("tables"), (tables) => tables === 0);
      // The alarm under way may still have to end.
      const isThere = await until(
        () => object.call("schedule", "note", "kept", 0).then(() => true, () => false),
        (done) => done,
      );
      assert.ok(isThere);
      const names = await fired(object, 2);
      assert.deepEqual(names, ["wiped", "kept"]);
      assert.deepEqual(await object.call("names"), []);
    });
  }
});

describe("beside a transaction that is given up", () => {
  it("every timer that stands fires", async () => {
    const object = workerd.object("Wiped", "among");
    await object.call("among");
    const names = await fired(object, 40);
    assert.equal(names.length, 40);
    assert.deepEqual(names.filter((name) => name.startsWith("in")), []);
  });

  it("the next verb has its alarm when it is resolved", async () => {
    const [alarm, dueAt] = await workerd.object("Wiped", "behind").call<[number, number]>("behind");
    assert.equal(alarm, dueAt);
  });
});

describe("an alarm of the object's own", () => {
  it("that wakes it into the version with timers is its own", async () => {
    const object = workerd.object("Grown", "woken");
    // As long as a slow machine may need until the process that knows of timers is gone.
    const at = Date.now() + 4_000;
    await object.call("forgetTimers", at);
    await workerd.kill();
    await workerd.start();
    // Nobody calls the object before its alarm has come, which it has when one that was set for later has.
    const other = workerd.object("Grown", "later");
    await other.call("schedule", Math.max(at + 500 - Date.now(), 0));
    await until(() => other.call<string[]>("came"), (came) => came.length > 0);
    assert.deepEqual(await until(() => object.call<string[]>("came"), (came) => came.length > 0), ["own alarm"]);
  });

  it("that was never set does not come with the first timer", async () => {
    const object = workerd.object("Grown", "new");
    await object.call("schedule", 50);
    assert.deepEqual(await until(() => object.call<string[]>("came"), (came) => came.length > 0), ["timer"]);
    assert.deepEqual(await object.call("came"), ["timer"]);
  });
});

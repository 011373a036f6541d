// The shard of the documentation has one writer at a time.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { Shard } from "../src/leases.js";

let clock: TestClock;
beforeEach(() => {
  clock = TestClock.install();
});
afterEach(() => clock.uninstall());

it("a shard has one writer, and what a former one sends too late is not written", async () => {
  const shard = await TestObject.open(clock, Shard);
  const anns = await shard.instance.take("ann");
  assert.ok(anns !== null);
  assert.equal(await shard.instance.take("bob"), null);
  await clock.advance(20_000);
  assert.equal(await shard.instance.keep(anns), true);
  assert.equal(await shard.instance.append(anns, "by ann"), true);

  shard.sql("INSERT INTO uploads VALUES ('a', ?)", anns);
  await clock.advance(60_000);
  assert.equal(await shard.instance.take("bob"), null, "an upload of ann's is left");
  shard.sql("DELETE FROM uploads");
  await clock.advance(10_000);
  const bobs = await shard.instance.take("bob");
  assert.ok(bobs !== null && bobs > anns);
  assert.equal(await shard.instance.append(anns, "by ann, too late"), false);
  assert.deepEqual(shard.sql("SELECT text FROM entries"), [{ text: "by ann" }]);
});

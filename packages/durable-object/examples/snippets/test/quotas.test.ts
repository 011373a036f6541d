// The example of quotas, with a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { Tenant } from "../src/quotas.js";

let clock: TestClock;
let tenant: TestObject<Tenant>;
const put = async (name: string, text: string): Promise<Response> =>
  tenant.fetch(`http://tenant/${name}`, { method: "PUT", body: text });

beforeEach(async () => {
  clock = TestClock.install({ now: "2030-06-01T20:15:00Z" });
  tenant = await TestObject.open(clock, Tenant);
});
afterEach(() => clock.uninstall());

it("requests are refused until the hour is over", async () => {
  for (let request = 0; request < 100; request += 1) {
    await put("one", "x");
  }
  const refused = await put("one", "y");
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "2700");
  assert.deepEqual(tenant.sql("SELECT text FROM documents"), [{ text: "x" }]);
  await clock.advance(2_700_000);
  assert.equal((await put("one", "y")).status, 201);
});

it("a document is stored with its charge, or not at all", async () => {
  assert.equal((await put("one", "x".repeat(600_000))).status, 201);
  assert.equal((await put("two", "x".repeat(600_000))).status, 507);
  assert.equal((await put("three", "x".repeat(400_000))).status, 201);
  assert.deepEqual(tenant.sql("SELECT name FROM documents ORDER BY name"), [{ name: "/one" }, { name: "/three" }]);
  assert.deepEqual(await tenant.instance.report(), { today: [2, 1_000_000, 0, 0], yesterday: undefined });
  await clock.advanceTo("2030-06-02T00:00:10Z");
  assert.deepEqual(await tenant.instance.report(), { today: [0, 0, 0, 0], yesterday: [2, 1_000_000, 0, 0] });
  await clock.advanceTo("2030-06-02T00:00:30Z");
  assert.deepEqual(await tenant.instance.report(), { today: [0, 0, 0, 0], yesterday: undefined });
});

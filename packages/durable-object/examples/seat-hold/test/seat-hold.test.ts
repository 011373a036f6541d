// The handlers of the example, with a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { SeatHold } from "../src/index.js";

const MINUTE_MS = 60_000;
let clock: TestClock;
let event: TestObject<SeatHold>;

beforeEach(async () => {
  clock = TestClock.install({ now: "2030-06-01T20:00:00Z" });
  event = await TestObject.open(clock, SeatHold, { name: "concert" });
});

afterEach(() => clock.uninstall());

it("a seat is free again when its hold is over, and not before", async () => {
  const until = await event.instance.hold("A1", "ada");
  assert.equal(until, Date.parse("2030-06-01T20:10:00Z"));
  assert.equal(await event.instance.hold("A1", "bob"), null);

  await clock.advance(10 * MINUTE_MS - 1);
  assert.equal((await event.instance.seats()).length, 1);
  await clock.advance(1);
  assert.deepEqual(await event.instance.seats(), []);
  assert.notEqual(await event.instance.hold("A1", "bob"), null);
});

it("a seat that was confirmed in time stays sold", async () => {
  await event.instance.hold("A1", "ada");
  await clock.advance(9 * MINUTE_MS);
  assert.equal(await event.instance.confirm("A1", "ada"), true);
  await clock.advance(60 * MINUTE_MS);
  assert.deepEqual(event.sql("SELECT holder, state FROM seats"), [{ holder: "ada", state: "sold" }]);
  assert.equal(event.alarmAt, null);
});

it("a hold outlives the object", async () => {
  await event.instance.hold("A1", "ada");
  await event.restart();
  await clock.advance(10 * MINUTE_MS);
  assert.deepEqual(await event.instance.seats(), []);
});

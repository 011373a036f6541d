// The example of reservations, with a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { Hall } from "../src/reservations.js";

const MINUTE_MS = 60_000;
let clock: TestClock;
let hall: TestObject<Hall>;
const seats = () => hall.sql("SELECT seat, holder, state FROM seats");

beforeEach(async () => {
  clock = TestClock.install();
  hall = await TestObject.open(clock, Hall);
});
afterEach(() => clock.uninstall());

it("a seat is paid in time, or free again", async () => {
  const ada = await hall.instance.hold("A1", "ada");
  const bob = await hall.instance.hold("B2", "bob");
  assert.ok(ada !== null && bob !== null);
  assert.equal(await hall.instance.hold("A1", "bob"), null);
  await clock.advance(9 * MINUTE_MS);
  assert.equal(await hall.instance.paid("A1", ada), true);
  await clock.advance(2 * MINUTE_MS);
  assert.deepEqual(seats(), [{ seat: "A1", holder: "ada", state: "sold" }]);
  assert.equal(await hall.instance.paid("B2", bob), false);
  assert.notEqual(await hall.instance.hold("B2", "cy"), null);
  assert.equal(await hall.instance.paid("B2", bob), false);
});

it("a payment that has begun has its time", async () => {
  const ticket = await hall.instance.hold("A1", "ada");
  assert.ok(ticket !== null);
  await clock.advance(9 * MINUTE_MS);
  assert.equal(await hall.instance.payment("A1", ticket), true);
  await clock.advance(4 * MINUTE_MS);
  assert.equal(await hall.instance.paid("A1", ticket), true);
  assert.equal(await hall.instance.payment("A1", ticket), false);
});

it("a seat is given back", async () => {
  const ticket = await hall.instance.hold("A1", "ada");
  assert.ok(ticket !== null);
  await hall.instance.release("A1", ticket);
  assert.deepEqual(seats(), []);
  assert.notEqual(await hall.instance.hold("A1", "bob"), null);
});

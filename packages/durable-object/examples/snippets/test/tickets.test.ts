// The box office does what the documentation says of it.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { BoxOffice } from "../src/tickets.js";

const HOLD_MS = 10 * 60_000;
let clock: TestClock;
let show: TestObject<BoxOffice>;
let aborted: string[];

beforeEach(async () => {
  aborted = [];
  const fetch = (url: string): Promise<Response> => {
    aborted.push(url.split("/").at(-1) ?? "");
    return Promise.resolve(new Response());
  };
  clock = TestClock.install();
  show = await TestObject.open(clock, BoxOffice, { env: { PAYMENTS: { fetch } as unknown as Fetcher } });
});
afterEach(() => clock.uninstall());

const state = (seat: string): unknown => show.sql("SELECT state FROM seats WHERE seat = ?", seat)[0]?.state;

async function held(seat: string, customer: string, request: string): Promise<string> {
  const opened = await show.instance.hold(seat, customer, request, `checkout-${request}`);
  assert.ok(opened.outcome === "new", opened.outcome);
  return opened.ticket.id;
}

it("a seat is held by one customer, and free again when the hold is over", async () => {
  await held("A1", "ann", "1");
  assert.equal((await show.instance.hold("A1", "ann", "1", "checkout-1")).outcome, "existing");
  const refused = await show.instance.hold("A1", "bob", "2", "checkout-2");
  assert.deepEqual(refused, { outcome: "refused", reason: "resource_full", open: 1, openMax: 1 });
  assert.equal(state("A1"), "held");
  await clock.advance(HOLD_MS);
  assert.deepEqual([state("A1"), aborted], ["free", ["checkout-1"]]);
  await held("A1", "bob", "2");
});

it("a seat that was bought in time stays sold", async () => {
  const id = await held("A1", "ann", "1");
  await clock.advance(HOLD_MS - 1);
  assert.equal(await show.instance.buy(id), true);
  assert.equal(await show.instance.buy(id), false);
  await clock.advance(HOLD_MS);
  assert.deepEqual([state("A1"), aborted], ["sold", []]);
  await assert.rejects(show.instance.hold("A1", "bob", "2", "checkout-2"), /A1 is sold/);
  await held("A2", "bob", "2");
});

it("a hold that is given up makes room at once", async () => {
  const ids: string[] = [];
  for (const seat of ["A1", "A2", "A3", "A4"]) {
    ids.push(await held(seat, "ann", seat));
  }
  const fifth = await show.instance.hold("A5", "ann", "A5", "checkout-A5");
  assert.ok(fifth.outcome === "refused" && fifth.reason === "actor_full");
  await show.instance.giveUp(ids[0] ?? "");
  await clock.advance(1);
  assert.deepEqual([state("A1"), aborted], ["free", ["checkout-A1"]]);
  await held("A5", "ann", "A5");
});

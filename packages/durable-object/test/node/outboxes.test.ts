// Goal: outcomes of an object that is killed are delivered in order, each at least once, and the writes that go with
// them are done once. Method: a real workerd, `kill -9` while the receiver is down and in the middle of a call; and an
// object that counts its rows.
import assert from "node:assert/strict";
import { it } from "node:test";
import { Workerd, until } from "./workerd.js";

interface Call {
  readonly id: string;
  readonly sequence: number;
  readonly attempt: number;
  readonly receiver: "up" | "down" | "hangs";
}

interface Seen {
  readonly orders: string[];
  readonly calls: Call[];
  readonly backlog: number;
  readonly dead: number;
}

const ORDERS = Array.from({ length: 100 }, (_, index) => `order-${index}`);

interface Rows {
  readonly rows: number;
  readonly count: number;
  readonly alarm: number | null;
}

it("writes as many rows as it says", async (t) => {
  const workerd = await Workerd.start({ entry: "outboxes.js", classes: ["CountedOutbox"] });
  t.after(() => workerd.stop());
  const object = workerd.object("CountedOutbox", "one");
  const rested = (): Promise<Rows> =>
    until(() => object.call<Rows>("seen"), ({ count, alarm }) => count === 0 && alarm === null);
  await object.call("append", 1);
  const counts: number[][] = [];
  for (const count of [1, 50]) {
    const before = await rested();
    const appended = await object.call<number>("append", count);
    const after = await rested();
    counts.push([appended, after.rows - before.rows - appended]);
  }
  t.diagnostic(`rows written by an append and its delivery: ${JSON.stringify(counts)}`);
  assert.deepEqual(counts, [[4, 10], [53, 59]]);
});

it("tells of every order in order through two kills, and writes each once", async (t) => {
  const workerd = await Workerd.start({ entry: "outboxes.js", classes: ["Shop"] });
  t.after(() => workerd.stop());
  const shop = workerd.object("Shop", "books");
  const seen = (isWanted: (seen: Seen) => boolean): Promise<Seen> => until(() => shop.call<Seen>("seen"), isWanted);

  await shop.call("receiver", "down");
  for (const id of ORDERS.slice(0, 60)) {
    await shop.call("order", id);
  }
  await seen(({ calls }) => calls.length >= 1);
  await workerd.kill();
  await workerd.start();

  await shop.call("receiver", "hangs");
  for (const id of ORDERS.slice(60)) {
    await shop.call("order", id);
  }
  assert.equal(await shop.call("wake"), true);
  await seen(({ calls }) => calls.at(-1)?.receiver === "hangs");
  await workerd.kill();
  await workerd.start();

  // The call that was cut is claimed until its deadline; whoever knows better does not wait for that.
  await shop.call("receiver", "up");
  assert.equal(await shop.call("wake"), true);
  const { orders, calls, dead } = await seen(({ backlog }) => backlog === 0);
  assert.deepEqual(orders, ORDERS);
  assert.equal(dead, 0);
  const arrived = calls.filter(({ receiver }) => receiver === "up");
  assert.deepEqual(arrived.map(({ id }) => id), ORDERS);
  assert.deepEqual(arrived.map(({ sequence }) => sequence), ORDERS.map((_, index) => index + 1));
  const before = calls.filter(({ receiver }) => receiver !== "up");
  assert.ok(before.every(({ id, attempt }) => id === "order-0" && attempt === 1), "nothing passed the first, at no cost");
});

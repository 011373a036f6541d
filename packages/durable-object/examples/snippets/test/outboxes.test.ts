// The shop tells its accounting what the documentation says.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { Shop } from "../src/outboxes.js";

let clock: TestClock;
let shop: TestObject<Shop>;
let answer: (order: string) => Response;
let told: string[];

beforeEach(async () => {
  answer = () => new Response();
  told = [];
  const fetch = (_: string, { headers }: { headers: Record<string, string> }): Promise<Response> => {
    const order = headers["idempotency-key"] ?? "";
    told.push(order);
    return Promise.resolve(answer(order));
  };
  clock = TestClock.install();
  shop = await TestObject.open(clock, Shop, { env: { ACCOUNTING: { fetch } as unknown as Fetcher } });
});
afterEach(() => clock.uninstall());

it("accounting is told of every order once, in order", async () => {
  await shop.instance.pay("1", 1_250);
  await shop.instance.pay("2", 300);
  await clock.advance(60_000);
  assert.deepEqual(told, ["1", "2"]);
});

it("an order that is paid twice is told of once", async () => {
  await shop.instance.pay("1", 1_250);
  await assert.rejects(shop.instance.pay("1", 1_250), /UNIQUE/);
  await clock.advance(60_000);
  assert.deepEqual(told, ["1"]);
});

it("an accounting that is busy is left alone as long as it says", async () => {
  answer = () => new Response(null, { status: 429, headers: { "retry-after": "120" } });
  await shop.instance.pay("1", 1_250);
  await clock.advance(10);
  answer = () => new Response();
  await shop.instance.pay("2", 300);
  await clock.advance(119_000);
  assert.deepEqual(told, ["1"]);
  await clock.advance(1_000);
  assert.deepEqual(told, ["1", "1", "2"]);
});

it("an order that is refused is kept until it is told of again", async () => {
  answer = (order) => new Response(null, { status: order === "1" ? 410 : 200 });
  await shop.instance.pay("1", 1_250);
  await shop.instance.pay("2", 300);
  await clock.advance(60_000);
  assert.deepEqual(told, ["1", "2"]);
  answer = () => new Response();
  assert.equal(await shop.instance.tellAgain(), 1);
  await clock.advance(60_000);
  assert.deepEqual(told, ["1", "2", "1"]);
  assert.equal(await shop.instance.tellAgain(), 0);
});

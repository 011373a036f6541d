// Goal: a payload comes back as it was given, or is refused by where it lies, before anything is written. Method: what
// JSON keeps, and what it would lose or make another thing of.
import assert from "node:assert/strict";
import { createContext, runInContext } from "node:vm";
import { afterEach, beforeEach, it } from "node:test";
import { TimerObject, type BuiltIns, type Payloads } from "@dueline/durable-object/kinds";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

class Room extends TimerObject<Payloads> {
  protected override handlers() {
    return { keep: () => undefined };
  }
  protected override builtIns(): BuiltIns {
    return { tickets: {}, reservations: {}, outboxes: { mail: () => undefined } };
  }
  get open() {
    return this.timers;
  }
}

let clock: TestClock;
let room: Room;
beforeEach(async () => {
  clock = TestClock.install();
  room = (await TestObject.open(clock, Room)).instance;
});
afterEach(() => clock.uninstall());

class Money {
  constructor(readonly cents: number) {}
}
class Written extends Money {
  toJSON(): object {
    return { cents: this.cents };
  }
}
const elsewhere = createContext({});
const REPEATED = { a: 1 };

const KEPT: Record<string, [payload: unknown, back?: unknown]> = {
  nothing: [undefined],
  null: [null],
  texts: [["", "a", "\u00e9\u{1f600}"]],
  numbers: [[0, 1.5, -1e21, Number.MAX_SAFE_INTEGER]],
  deep: [{ a: { b: [{ c: [[true, null]] }] } }],
  "a part that is undefined": [{ a: undefined, b: 1 }, { b: 1 }],
  "no prototype": [Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
  "an object of another realm": [runInContext("({ a: [1] })", elsewhere), { a: [1] }],
  "what says itself how it is stored": [{ price: new Written(5) }, { price: { cents: 5 } }],
  "the same thing twice": [[REPEATED, REPEATED]],
  bytes: [new Uint8Array([1, 2])],
  "a view of bytes": [new DataView(new Uint8Array([1, 2, 3]).buffer, 1), new Uint8Array([2, 3])],
};

for (const [what, [payload, back = payload]] of Object.entries(KEPT)) {
  it(`keeps ${what}`, async () => {
    await room.schedule("keep", { name: "a", after: 1, payload });
    const found = (await room.get("keep", "a"))?.payload;
    assert.deepEqual(found, back);
  });
}

const cycle: { self?: unknown } = {};
cycle.self = cycle;
let nested: unknown = 1;
for (let depth = 0; depth < 100_000; depth += 1) {
  nested = [nested];
}

const given = new Uint8Array(2);
structuredClone(given, { transfer: [given.buffer] });

const REFUSED: Record<string, [payload: unknown, words: RegExp]> = {
  "a Date": [new Date(0), /^payload_not_serializable: payload is a Date, which would come back as a text: .*`getTime\(\)`/],
  "a Date in it": [{ seats: [{ at: new Date(Number.NaN) }] }, /payload\.seats\[0\]\.at is a Date/],
  "a Map": [{ "a b": new Map() }, /payload\["a b"\] is an object of the class `Map`/],
  "a Set": [[1, new Set([1])], /payload\[1\] is an object of the class `Set`/],
  "no number": [{ price: Number.NaN }, /payload\.price is NaN, which would come back as null/],
  "no end": [Infinity, /payload is Infinity/],
  "a bigint": [{ ids: [1n] }, /payload\.ids\[0\] is a bigint, which has no JSON form: store its text/],
  "a function": [{ done: () => undefined }, /payload\.done is the function `done`, which has no JSON form/],
  "a function alone": [() => undefined, /payload is a function, which has no JSON form/],
  "a symbol": [{ id: Symbol("secret") }, /payload\.id is a symbol/],
  "undefined in a list": [[1, undefined], /payload\[1\] is undefined, which would come back as null/],
  "a hole": [[1, , 2], /payload\[1\] is undefined/],
  "bytes in it": [{ bytes: new Uint8Array(2) }, /payload\.bytes is an object of the class `Uint8Array`.*base64/],
  "an object of a class": [{ price: new Money(5) }, /payload\.price is an object of the class `Money`.*`toJSON`/],
  "an error": [new Error("x"), /payload is an object of the class `Error`/],
  "a Map of another realm": [runInContext("({ a: new Map() })", elsewhere), /payload\.a is an object of the class `Map`/],
  "bytes that were given away": [given, /the payload's bytes are not there: .*detached/],
  "a buffer that was given away": [given.buffer, /the payload's bytes are not there/],
  "a cycle": [cycle, /the payload has no JSON form: .*circular/],
  "no bottom": [nested, /the payload has no JSON form/],
};

for (const [what, [payload, words]] of Object.entries(REFUSED)) {
  it(`refuses ${what}, as payload, data, detail and outcome`, async () => {
    const { tickets, reservations, outboxes } = room.open;
    const calls = [
      () => room.schedule("keep", { name: "a", after: 1, payload }),
      () => tickets.open({ resource: "a", ttl: 1_000, data: payload }),
      () => reservations.reserve("a", { commitWithin: 1_000, detail: payload }),
      () => outboxes.append("mail", [{ id: "a", payload }]),
    ];
    for (const call of calls) {
      await assert.rejects(call(), (thrown) => {
        assert.equal((thrown as { code?: string }).code, "payload_not_serializable");
        assert.match((thrown as Error).message, words);
        assert.doesNotMatch((thrown as Error).message, /secret/);
        return true;
      });
    }
    assert.deepEqual(await room.open.counts(), []);
  });
}

it("has 491,520 bytes as it is stored, and not one more", async () => {
  const longest = { text: "x".repeat(491_518), bytes: new Uint8Array(491_519) };
  for (const payload of Object.values(longest)) {
    await room.schedule("keep", { name: "a", after: 1, payload });
    assert.deepEqual((await room.get("keep", "a"))?.payload, payload);
  }
  for (const payload of [`${longest.text}x`, new Uint8Array(491_520)]) {
    const words = /^DuelineError: payload_too_large: a payload takes at most 491520 bytes as it is stored, this one 491521$/;
    await assert.rejects(room.schedule("keep", { name: "b", after: 1, payload }), words);
  }
});

// Goal: what a handler keeps of its timer stays what it was. A payload and a name are handed over where they lie in
// the engine's memory, which is used again. Method: handlers that keep each timer; later runs write over that memory.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { detached, TimerObject, type DueTimer, type Handlers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { bytes: Uint8Array; call: Uint8Array };

interface Kept {
  readonly timer: DueTimer<Uint8Array>;
  readonly seen: { readonly payload: string; readonly name: string | undefined; readonly occurrenceId: string };
}

const kept: Kept[] = [];
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const shown = (timer: DueTimer<Uint8Array>): Kept["seen"] => ({
  payload: hex(timer.payload),
  name: timer.name,
  occurrenceId: timer.occurrenceId,
});

class Keeper extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    const keep = (timer: DueTimer<Uint8Array>): void => void kept.push({ timer, seen: shown(timer) });
    return { bytes: keep, call: detached({ call: keep, settle: keep }) };
  }
}

let clock: TestClock;
let object: TestObject<Keeper>;

describe("what a handler keeps", () => {
  beforeEach(async () => {
    kept.length = 0;
    clock = TestClock.install();
    object = await TestObject.open(clock, Keeper);
  });
  afterEach(() => clock.uninstall());

  it("is the same behind later runs", async () => {
    const kinds = ["bytes", "call"] as const;
    for (let number = 0; number < 60; number += 1) {
      const payload = new Uint8Array(1 + (number % 7) * 40).fill(number + 1);
      const name = number % 3 === 0 ? {} : { name: `${number}`.repeat(1 + (number % 5)) };
      await object.instance.schedule(kinds[number % 2] ?? "bytes", { ...name, after: number % 4, payload });
    }
    await clock.advance(60_000);
    assert.equal(kept.length, 30 + 2 * 30);
    for (const { timer, seen } of kept) {
      assert.deepEqual(shown(timer), seen);
    }
    assert.equal(new Set(kept.map(({ seen }) => seen.occurrenceId)).size, 60);
  });

  it("has a name only if the timer has one", async () => {
    await object.instance.schedule("bytes", { after: 0, payload: new Uint8Array() });
    await object.instance.schedule("bytes", { name: "a", after: 0, payload: new Uint8Array() });
    await clock.advance(1_000);
    assert.deepEqual(kept.map(({ timer }) => "name" in timer), [false, true]);
    assert.deepEqual(kept.map(({ timer }) => "lastError" in timer), [false, false]);
  });
});

// Goal: an object with an `ownAlarm` has it called for the alarm that is its own, and for no other. Method: objects that
// are new, and one that its own alarm wakes into the version with timers, under a virtual clock.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TimerObject, type Handlers } from "@dueline/durable-object";
import { TestClock, TestObject } from "@dueline/durable-object/testing";

type Kinds = { note: undefined };

let [own, noted] = [0, 0];

class Session extends TimerObject<Kinds> {
  protected override handlers(): Handlers<Kinds> {
    return { note: () => void (noted += 1) };
  }
  protected override ownAlarm(): void {
    own += 1;
  }
  set(at: number): Promise<void> {
    return this.timers.setAlarm(at);
  }
}

let clock: TestClock;
beforeEach(() => {
  [own, noted] = [0, 0];
  clock = TestClock.install();
});
afterEach(() => clock.uninstall());

for (const after of [0, 5, 60_000]) {
  it(`a new object that never set its alarm has none, though a timer comes in ${after} ms`, async () => {
    const object = await TestObject.open(clock, Session);
    await object.instance.schedule("note", { after });
    await clock.advance(120_000);
    assert.deepEqual([own, noted], [0, 1]);
  });
}

it("nor does the next instance of it", async () => {
  const object = await TestObject.open(clock, Session);
  await object.instance.schedule("note", { after: 1_000 });
  await object.restart();
  await clock.advance(1_000);
  assert.deepEqual([own, noted], [0, 1]);
});

it("an alarm that was set comes once, beside timers", async () => {
  const object = await TestObject.open(clock, Session);
  await object.instance.schedule("note", { after: 1_000 });
  await object.instance.set(clock.now + 2_000);
  await clock.advance(1_999);
  assert.deepEqual([own, noted], [0, 1]);
  await clock.advance(10_000);
  assert.deepEqual([own, noted], [1, 1]);
});
